import type { Clock } from '@millrace/kit/clock';
import { fail } from '../core/api.js';
import type { Entry } from '../core/session.js';
import { isSameQuestion, type QuestionContent } from '../questions/question.js';
import type { AcpDriver } from './drivers/acp.js';
import type { PermissionRequests } from '../permission-tool/requests.js';
import { sessionDirectory } from './drivers/session-files.js';
import { screenKindOf } from './cli/command-lines.js';
import { ownChoice, type ScreenKind, type ScreenRules } from './cli/own-rules.js';
import type { SessionSettings } from './cli/settings.js';
import { readDialog } from './evidence/dialog.js';
import type { TalkingDriver } from './drivers/driver.js';
import {
  choosesByArrows,
  hasMarkers,
  holdsInput,
  readPane,
  type PaneReading,
} from './evidence/pane-markers.js';
import { Turns } from '../core/turns.js';

export interface AgentInputParts {
  clock: Clock;
  dataDir: string;
  tmux: TalkingDriver;
  acp: AcpDriver;
  requests: PermissionRequests;
  settings: SessionSettings;
}

/** Writes texts and answers to agents, each by way of its driver. */
export class AgentInput {
  readonly #conversation: Conversation;

  constructor(private readonly parts: AgentInputParts) {
    this.#conversation = new Conversation({ clock: parts.clock, driver: parts.tmux });
  }

  /** False when the agent did not take the text. */
  async say(entry: Entry, text: string): Promise<boolean> {
    const { id, driver } = entry.session;
    if (driver !== 'acp') return this.#conversation.say(id, this.#kind(entry), text);
    return (await this.parts.acp.call(id, { do: 'prompt', text })).reply === 'taken';
  }

  /** Selects an option of the dialog on the agent's screen. */
  async choose(entry: Entry, content: QuestionContent, option: string): Promise<'taken' | 'gone'> {
    const { id } = entry.session;
    const outcome = await this.#conversation.choose(id, this.#kind(entry), content, option);
    if (outcome === 'stuck') throw notTaken();
    return outcome;
  }

  /** Is nothing known of its screens, so that it does not show whether a text was taken? */
  isBlind(entry: Entry): boolean {
    return !hasMarkers(this.#kind(entry));
  }

  #kind(entry: Entry): ScreenKind {
    return screenKindOf(this.parts.settings.values.backends.extra, entry);
  }

  /** Answers a permission request; `message` goes to a headless agent that is denied one. */
  async permit(
    { session, handle }: Entry,
    ref: string,
    option: string,
    message: string | undefined,
  ): Promise<'taken' | 'gone'> {
    const { acp, requests, dataDir } = this.parts;
    const { id, driver } = session;
    const [starts, permission = ''] = ref.split('-');
    if (Number(starts) !== handle.starts) return 'gone';
    if (driver === 'headless') {
      return requests.answer(sessionDirectory(dataDir, id), permission, option, message);
    }
    const { reply } = await acp.call(id, { do: 'answer', permission, option });
    if (reply === 'refused') throw notTaken();
    return reply === 'gone' ? reply : 'taken';
  }

  async interrupt({ session: { id, driver } }: Entry): Promise<void> {
    if (driver === 'acp') await this.parts.acp.call(id, { do: 'cancel' });
    else await this.#conversation.interrupt(id);
  }
}

/** The refusal when the dialog is still there after the choice. */
function notTaken(): Error {
  return fail(
    'SESSION_STATE',
    'The agent did not take the answer. Open its terminal with `ctl agent attach`.',
  );
}

/** How long to wait for a sign that a turn has started, or that a choice was accepted. */
const turnMs = 10_000;
/** If the screen has not changed at all after this, Enter was lost and is pressed once more. */
const secondEnterMs = 3_000;
/** How long to wait for the effect of a digit where no Enter is needed. */
const choiceMs = 1_500;
/** How long a paste may take to appear in the input box. */
const pasteMs = 8_000;
/**
 * The input box, and what is shown below it, must not change for this long before Enter: a list
 * of commands that is still being filtered would run another command than the one sent.
 */
const stillMs = 600;
const stepMs = 60;

/** Types into the agents of a driver. */
export class Conversation {
  readonly #parts: { clock: Clock; driver: TalkingDriver };
  readonly #turns = new Turns();

  constructor(parts: { clock: Clock; driver: TalkingDriver }) {
    this.#parts = parts;
  }

  /**
   * Pastes the text, presses Enter and waits for the turn to start; false when the text did not
   * arrive or the turn did not start. Texts for one agent are serialized.
   */
  say(id: string, cli: ScreenKind, text: string): Promise<boolean> {
    return this.#turns.in(id, () => this.#say(id, cli, text));
  }

  /**
   * Selects an option of the dialog on the screen and waits until the dialog closes. `gone`: the
   * screen no longer shows this dialog; `stuck`: it is still open after the choice.
   */
  choose(
    id: string,
    cli: ScreenKind,
    content: QuestionContent,
    optionId: string,
  ): Promise<'taken' | 'gone' | 'stuck'> {
    return this.#turns.in(id, () => this.#chooseOption(id, cli, content, optionId));
  }

  async #chooseOption(id: string, cli: ScreenKind, content: QuestionContent, optionId: string) {
    const isShown = ({ screen }: View) => {
      const dialog = readDialog(cli, screen);
      return dialog !== undefined && isSameQuestion(dialog, content);
    };
    if (!isShown(await this.#screen(id, cli))) return 'gone';
    if (typeof cli !== 'string') return this.#chooseOwn(id, cli, isShown, optionId);
    await this.#choose(id, cli, optionId);
    const isAnswered = (view: View) => !isShown(view);
    if (await this.#waitFor(id, cli, choiceMs, isAnswered)) return 'taken';
    // Where a digit only moves the cursor, Enter confirms, but only this option.
    const { screen } = await this.#screen(id, cli);
    if (readDialog(cli, screen)?.selected !== optionId) return 'stuck';
    await this.#parts.driver.press(id, 'Enter');
    return (await this.#waitFor(id, cli, turnMs, isAnswered)) ? 'taken' : 'stuck';
  }

  /**
   * Answers a question by a rule of the config. A program that shows typed keys waits for Enter,
   * and may then show nothing for a while.
   */
  async #chooseOwn(
    id: string,
    rules: ScreenRules,
    isShown: (view: View) => boolean,
    optionId: string,
  ) {
    const { driver } = this.#parts;
    const before = await this.#screen(id, rules);
    const choice = ownChoice(rules, before.screen, optionId);
    if (choice === undefined) return 'gone';
    const keys = typeof choice === 'string' ? [choice] : choice.keys.trim().split(/\s+/);
    if (typeof choice === 'string') await driver.type(id, choice);
    else for (const key of keys) await driver.press(id, key);
    const echo = squeezed(before.screen) + squeezed(keys.join(''));
    const isEcho = ({ screen }: View) => squeezed(screen) === echo;
    const hasChanged = (view: View) => !isShown(view);
    if (!(await this.#waitFor(id, rules, choiceMs, hasChanged)) && typeof choice !== 'string') {
      return (await this.#waitFor(id, rules, turnMs, hasChanged)) ? 'taken' : 'stuck';
    }
    const isEchoed = isEcho(await this.#screen(id, rules));
    if (typeof choice === 'string' || isEchoed) await driver.press(id, 'Enter');
    if (isEchoed) return 'taken';
    return (await this.#waitFor(id, rules, turnMs, hasChanged)) ? 'taken' : 'stuck';
  }

  interrupt(id: string): Promise<void> {
    return this.#parts.driver.press(id, 'Escape');
  }

  async #say(id: string, cli: ScreenKind, text: string): Promise<boolean> {
    const { driver } = this.#parts;
    const before = await this.#screen(id, cli);
    let isEchoed = false;
    if (before.reading.kind === 'question' && typeof cli === 'string' && /^\d$/.test(text.trim())) {
      await this.#choose(id, cli, text.trim());
      const isChanged = ({ screen }: View) => screen !== before.screen;
      if (await this.#waitFor(id, cli, choiceMs, isChanged)) return true;
    } else {
      const view = await this.#readyToPaste(id, cli, before);
      if (!view) return false;
      await driver.paste(id, text);
      const isExpected = expectation(cli, view, text);
      if (!(await this.#waitForStill(id, cli, isExpected))) {
        await this.#takeBack(id, cli, text);
        return false;
      }
      isEchoed = !hasBox(cli) && (await this.#screen(id, cli)).screen !== view.screen;
    }
    return this.#enter(id, cli, isEchoed);
  }

  async #choose(id: string, cli: ScreenKind, digit: string): Promise<void> {
    const { driver } = this.#parts;
    // The digit alone selects; an Enter after it would answer the next dialog.
    if (!choosesByArrows(cli)) return driver.type(id, digit);
    for (let at = 1; at < Number(digit); at++) await driver.press(id, 'Right');
    await driver.press(id, 'Enter');
  }

  /** A program with known screens accepts text only after it shows its input box. */
  async #readyToPaste(id: string, cli: ScreenKind, before: View): Promise<View | undefined> {
    const isReady = ({ reading }: View) =>
      !hasBox(cli) || reading.kind === 'question' || reading.input !== undefined;
    let view = before;
    const isShown = await this.#waitFor(id, cli, pasteMs, (now) => isReady((view = now)));
    return isShown ? view : undefined;
  }

  /** `isEchoed`: without an input box, text that was shown when it was typed has arrived. */
  async #enter(id: string, cli: ScreenKind, isEchoed: boolean): Promise<boolean> {
    const { driver } = this.#parts;
    const pasted = await this.#screen(id, cli);
    await driver.press(id, 'Enter');
    const hasBegun = (now: View) => hasTurnBegun(now, pasted);
    if (await this.#waitFor(id, cli, secondEnterMs, hasBegun)) return true;
    if (isEchoed && typeof cli !== 'string') return true;
    if ((await this.#screen(id, cli)).screen === pasted.screen) await driver.press(id, 'Enter');
    return (await this.#waitFor(id, cli, turnMs - secondEnterMs, hasBegun)) || isEchoed;
  }

  /** Clears pasted text from the input box before the next text. */
  async #takeBack(id: string, cli: ScreenKind, text: string): Promise<void> {
    const { reading } = await this.#screen(id, cli);
    const isThere = holdsInput(reading, text) || reading.input?.startsWith(`${text} (`);
    if (isThere) await this.#parts.driver.press(id, 'C-u');
  }

  /** Waits until the screen is as expected and its lower part has not changed for a while. */
  async #waitForStill(
    id: string,
    cli: ScreenKind,
    isExpected: (view: View) => boolean,
  ): Promise<boolean> {
    const { clock } = this.#parts;
    const until = clock.monotonic() + pasteMs;
    let shown: string | undefined;
    let since = clock.monotonic();
    for (;;) {
      const view = await this.#screen(id, cli);
      const now = clock.monotonic();
      const lower = lowerPart(view);
      if (lower !== shown) {
        shown = lower;
        since = now;
      } else if (now - since >= stillMs && isExpected(view)) return true;
      if (now >= until) return false;
      await clock.sleep(stepMs);
    }
  }

  async #waitFor(
    id: string,
    cli: ScreenKind,
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

  async #screen(id: string, cli: ScreenKind): Promise<View> {
    const screen = (await this.#parts.driver.screen(id)) ?? '';
    return { screen, reading: readPane(cli, screen) };
  }
}

interface View {
  screen: string;
  reading: PaneReading;
}

/** Rules of the config do not say where an input box is. */
function hasBox(cli: ScreenKind): boolean {
  return typeof cli === 'string' && hasMarkers(cli);
}

function squeezed(text: string): string {
  return text.replaceAll(/\s+/g, '');
}

/** Above the input box an agent at work draws all the time. */
function lowerPart({ screen, reading }: View): string {
  return reading.below.length === 0 ? screen : reading.below.join('\n');
}

/** If there is an input box it must contain the text; otherwise any screen is accepted. */
function expectation(cli: ScreenKind, before: View, text: string): (view: View) => boolean {
  return hasBox(cli) && before.reading.input !== undefined
    ? ({ reading }) => holdsInput(reading, text)
    : () => true;
}

/** The typed text must have left the input box; without a box, the screen must change. */
function hasTurnBegun(now: View, pasted: View): boolean {
  if (now.screen === pasted.screen) return false;
  const { input } = now.reading;
  if (input === undefined || pasted.reading.input === undefined) return true;
  return input === '' || input !== pasted.reading.input;
}
