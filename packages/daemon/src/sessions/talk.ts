import type { Clock } from '@millrace/kit/clock';
import type { TalkingDriver } from './driver.js';
import { readPane, type PaneReading } from './pane-markers.js';
import { Turns } from './turns.js';

export interface TalkParts {
  clock: Clock;
  driver: TalkingDriver;
}

/** How long an agent has to show that it took what it was told. */
const patienceMs = 10_000;
/** Some programs take an Enter that comes with a paste for a part of it. */
const pauseMs = 150;
/** When nothing at all has changed, Enter was not taken, and may be pressed once more. */
const secondEnterMs = 3_000;
/** How long a choice or a paste takes to show. */
const choiceMs = 1_500;
const pasteMs = 1_500;
const stepMs = 60;

/** Types into the agents of a driver. */
export class Talk {
  readonly #parts: TalkParts;
  readonly #turns = new Turns();

  constructor(parts: TalkParts) {
    this.#parts = parts;
  }

  /**
   * Pastes the text, presses Enter and waits for the turn to begin; false when nothing shows that
   * it did. Texts for one agent go one after the other.
   */
  say(id: string, cli: string, text: string): Promise<boolean> {
    return this.#turns.in(id, () => this.#say(id, cli, text));
  }

  interrupt(id: string): Promise<void> {
    return this.#parts.driver.press(id, 'Escape');
  }

  async #say(id: string, cli: string, text: string): Promise<boolean> {
    const { driver, clock } = this.#parts;
    const before = await this.#screen(id, cli);
    const isChanged = ({ screen }: View) => screen !== before.screen;
    if (before.reading.kind === 'question' && /^\d$/.test(text.trim())) {
      // A choice is made by its number alone; an Enter behind it would answer what comes next.
      await driver.type(id, text.trim());
      if (await this.#waitFor(id, cli, choiceMs, isChanged)) return true;
    } else {
      await driver.paste(id, text);
      await this.#waitFor(id, cli, pasteMs, isChanged);
    }
    await clock.sleep(pauseMs);
    const pasted = await this.#screen(id, cli);
    await driver.press(id, 'Enter');
    const hasBegun = (now: View) => hasTurnBegun(now, pasted);
    if (await this.#waitFor(id, cli, secondEnterMs, hasBegun)) return true;
    if ((await this.#screen(id, cli)).screen === pasted.screen) await driver.press(id, 'Enter');
    return this.#waitFor(id, cli, patienceMs - secondEnterMs, hasBegun);
  }

  async #waitFor(
    id: string,
    cli: string,
    limitMs: number,
    isSo: (view: View) => boolean,
  ): Promise<boolean> {
    const { clock } = this.#parts;
    const until = clock.monotonic() + limitMs;
    do {
      if (isSo(await this.#screen(id, cli))) return true;
      await clock.sleep(stepMs);
    } while (clock.monotonic() < until);
    return false;
  }

  async #screen(id: string, cli: string): Promise<View> {
    const screen = (await this.#parts.driver.screen(id)) ?? '';
    return { screen, reading: readPane(cli, screen) };
  }
}

interface View {
  screen: string;
  reading: PaneReading;
}

/** What was typed must be gone from the input box; where there is none, something must happen. */
function hasTurnBegun(now: View, pasted: View): boolean {
  if (now.screen === pasted.screen) return false;
  const { input } = now.reading;
  if (input === undefined || pasted.reading.input === undefined) return true;
  return input === '' || input !== pasted.reading.input;
}
