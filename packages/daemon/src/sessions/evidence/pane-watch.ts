import type { Clock } from '@millrace/kit/clock';
import { rulesOf, screenKindOf } from '../cli/command-lines.js';
import { ownLimit, type ScreenKind } from '../cli/own-rules.js';
import type { SessionSettings } from '../cli/settings.js';
import type { Sign, Entry } from '../../core/session.js';
import { signalIn } from '../../think/signals.js';
import { isSameQuestion } from '../../questions/question.js';
import { readDialog, type Dialog } from './dialog.js';
import type { TalkingDriver } from '../drivers/driver.js';
import { failureAbove, hasMarkers, readPane, typedLine, type PaneReading } from './pane-markers.js';

/** An empty prompt counts when nothing has been drawn for this long. */
const settledMs = 600;
/** Without having seen the turn under way, it must be empty this long. */
const unseenTurnMs = 5_000;
/** A prompt below a sign of work may be that of a program that draws the whole screen. */
const belowWorkMs = 3_000;
/** An agent with unknown screens is ready for input when it stops drawing. */
const readyMs = 1_500;

/** A dialog that is drawn does not change for this long. */
const dialogStillMs = 60;
const maxCaptures = 6;

export interface PaneParts {
  clock: Clock;
  settings: SessionSettings;
}

/** Follows the screen of one agent. */
export class PaneWatch {
  #screen: string | undefined;
  #reading: PaneReading | undefined;
  #end = -1;
  #drawnAt = -Infinity;
  #window: number | undefined;
  #dialog: Dialog | undefined;
  #turn = -1;
  /** The text of the question that was shown when the last input came. */
  #answered: string | undefined;
  /** The turn in which it was seen working, by the time of its input. */
  #busyTurn = -1;

  constructor(private readonly parts: PaneParts) {}

  /** Reads the screen, if it was redrawn since. */
  async inspect(driver: TalkingDriver, entry: Entry, outputEnd: number): Promise<void> {
    const { session, handle } = entry;
    const cli = this.#kind(entry);
    // Typed text is shown before the output grows.
    const isNewTurn = handle.inputAt !== this.#turn;
    if (outputEnd !== this.#end || isNewTurn || this.#screen === undefined) {
      this.#end = outputEnd;
      if (isNewTurn) this.#answered = textOf(this.#dialog);
      this.#turn = handle.inputAt;
      this.#drawnAt = this.parts.clock.monotonic();
      this.#screen = (await driver.screen(session.id)) ?? '';
      this.#dialog = await this.#settledDialog(driver, session.id, cli);
      this.#reading = this.#read(cli, this.#screen);
      this.#window ??= windowOnScreen(handle.cli, this.#screen);
    }
    if (this.#reading?.kind === 'busy') this.#busyTurn = handle.inputAt;
  }

  /** A question that was answered stays on the screen of a program that only writes lines. */
  #read(cli: ScreenKind, screen: string): PaneReading {
    const reading = readPane(cli, screen);
    if (typeof cli === 'string' || reading.kind !== 'question') return reading;
    const text = textOf(readDialog(cli, screen));
    const isPast = text !== this.#answered && text?.startsWith(this.#answered ?? text);
    if (!isPast || this.#answered === undefined) return reading;
    this.#dialog = undefined;
    return { ...reading, kind: 'unknown' };
  }

  #kind(entry: Entry): ScreenKind {
    return screenKindOf(this.parts.settings.values.backends.extra, entry);
  }

  /** The dialog that its screen shows. */
  get dialog(): Dialog | undefined {
    return this.#dialog;
  }

  /** A dialog counts when two inspections see the same one: a screen may be half drawn. */
  async #settledDialog(
    driver: TalkingDriver,
    id: string,
    cli: ScreenKind,
  ): Promise<Dialog | undefined> {
    let seen = readDialog(cli, this.#screen ?? '');
    for (let count = 0; seen && count < maxCaptures; count++) {
      if (this.#dialog && isSameQuestion(this.#dialog, seen)) return seen;
      await this.parts.clock.sleep(dialogStillMs);
      this.#screen = (await driver.screen(id)) ?? '';
      const next = readDialog(cli, this.#screen);
      if (next && isSameQuestion(next, seen)) return next;
      seen = next;
    }
    return undefined;
  }

  /** Size of the model's context window, if its screen has shown it. */
  get contextWindow(): number | undefined {
    return this.#window;
  }

  /** Is it ready for its first prompt? */
  isReady(entry: Entry): boolean {
    if (hasMarkers(this.#kind(entry)))
      return this.#reading?.kind === 'prompt' && this.quietMs > settledMs;
    return (this.#screen ?? '').trim() !== '' && this.quietMs > readyMs;
  }

  sign(entry: Entry): Sign | undefined {
    const { session, handle } = entry;
    const reading = this.#reading;
    if (!reading) return undefined;
    const isReported = handle.limitTurn === handle.inputAt;
    switch (reading.kind) {
      case 'busy':
        return { status: 'working', reason: reading.reason };
      case 'question': {
        // A dialog may report a limit, and ask how to continue.
        const limit = isReported ? undefined : this.#limit(entry, reading);
        return limit ?? { status: 'waiting_for_input', reason: reading.reason };
      }
      case 'prompt': {
        if (handle.isPromptPending || !this.#isSettled(handle.inputAt)) return undefined;
        const limit = isReported ? undefined : this.#limit(entry, reading);
        if (limit) return limit;
        const isOver = session.status === 'rate_limited';
        const reason = isOver ? 'its limit is over and its prompt is empty' : reading.reason;
        const failure = failureAbove(this.#kind(entry), reading);
        const isSame = session.status === 'idle' && failure === undefined;
        return { status: 'idle', reason: isSame ? keep(session) : reason, failure };
      }
      case 'unknown':
        return isReported ? undefined : this.#ownLimit(entry, reading);
    }
  }

  /** The status of an agent whose screens are unknown. */
  blindSign(entry: Entry): Sign | undefined {
    const { session, handle } = entry;
    const isWaiting = ['waiting_for_input', 'rate_limited'].includes(session.status);
    if (hasMarkers(this.#kind(entry)) || handle.isPromptPending || isWaiting) return undefined;
    const reason = 'it runs; nothing is known of its screen, so it counts as working';
    return { status: 'working', reason };
  }

  /** How long nothing has been drawn. */
  get quietMs(): number {
    return this.parts.clock.monotonic() - this.#drawnAt;
  }

  #isSettled(turn: number): boolean {
    const quiet = this.quietMs;
    if (this.#reading?.isEcho) return false;
    if (this.#reading?.isBelowWork) return quiet > belowWorkMs;
    return this.#busyTurn === turn ? quiet > settledMs : quiet > unseenTurnMs;
  }

  /** A limit by the rule of the config. */
  #ownLimit({ session, handle }: Entry, { above }: PaneReading): Sign | undefined {
    const { extra, limit_retry: retryMs } = this.parts.settings.values.backends;
    const now = this.parts.clock.now();
    const { limit } = rulesOf(extra, session.backend) ?? {};
    if (!limit || handle.isPromptPending) return undefined;
    const found = ownLimit(limit, above, now);
    if (!found) return undefined;
    const limitedUntil = found.resetAt ?? now + retryMs;
    return { status: 'rate_limited', reason: found.reason, limitedUntil };
  }

  #limit(entry: Entry, reading: PaneReading): Sign | undefined {
    const own = this.#ownLimit(entry, reading);
    if (own) return own;
    const { cli } = entry.handle;
    const { above } = reading;
    const now = this.parts.clock.now();
    for (const line of above.toReversed()) {
      // Lines above the last input belong to earlier turns.
      if (typedLine.test(line)) return undefined;
      const stdout = line.replaceAll(/^[\s│|⎿●•✻■⏺]+|[\s│|]+$/g, '');
      const found = signalIn({ id: cli, succeeded: true, stdout, stderr: '' }, now);
      if (!found || found.kind === 'unauthenticated' || stdout === '') continue;
      const limitedUntil = Math.max(
        now + this.parts.settings.values.backends.limit_retry,
        found.resetAt ?? 0,
      );
      return { status: 'rate_limited', reason: found.reason, limitedUntil };
    }
    return undefined;
  }
}

/** All that a question shows, without the layout. */
function textOf(dialog: Dialog | undefined): string | undefined {
  return dialog && `${dialog.title}\n${dialog.body}`.replaceAll(/\s+/g, '');
}

/** An idle agent stays idle for the reason that it was. */
function keep({ status_reason }: { status_reason: string | null }): string {
  return status_reason ?? 'its prompt is empty';
}

const standard = 200_000;
const large = 1_000_000;

/** The first screen of claude names the model: `Opus 4.8 (1M context) · API Usage Billing`. */
const banner = /^[\s│]*[A-Z][a-z]+ \d+(?:\.\d+)?( \(1M context\))?(?: with \w+ effort)? · /m;

/** Transcripts of claude do not contain the size of its context window; its first screen does. */
export function windowOnScreen(cli: string, screen: string): number | undefined {
  if (cli !== 'claude' || !screen.includes('Claude Code')) return undefined;
  const found = banner.exec(screen);
  if (!found) return undefined;
  return found[1] === undefined ? standard : large;
}
