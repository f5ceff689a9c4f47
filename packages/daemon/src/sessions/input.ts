import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { fail } from '../core/refusals.js';
import { isEnded, withFacts, withStatus, type Entry, type Handle } from '../core/session.js';
import type { StoredQuestion } from '../questions/question.js';
import type { AcpDriver } from './drivers/acp.js';
import { notTaken } from './pending-questions.js';
import { entryOf, notFound, type SessionStore } from './session-store.js';
import type { PermissionRequests } from './drivers/permission-requests.js';
import type { Session } from './port.js';
import { invalid } from './spawning.js';
import type { Conversation } from './conversation.js';

export interface InputParts {
  store: SessionStore;
  clock: Clock;
  log: Log;
  conversation: Conversation;
  acp: AcpDriver;
  requests: PermissionRequests;
  /** Inspects the agents now. */
  wake: () => Promise<void>;
}

/** Sends prompts, texts and answers to agents. */
export class Input {
  readonly #parts: InputParts;
  /** Agents whose first prompt is being sent. */
  readonly #prompting = new Map<string, Promise<void>>();

  constructor(parts: InputParts) {
    this.#parts = parts;
  }

  /** Resolves when no first prompt is on its way. */
  async settled(): Promise<void> {
    await Promise.all(this.#prompting.values());
  }

  async send(id: string, text: string): Promise<Session> {
    const { session, handle } = this.#talkative(id);
    if (text.includes('\0')) throw invalid('text', 'holds a NUL, which no agent takes');
    if (session.status === 'spawning') {
      throw fail('SESSION_STATE', 'The session is still spawning: wait until it works.');
    }
    const inputAt = this.#parts.clock.now();
    const isTaken = await this.#say({ session, handle }, text).catch(async (error: unknown) => {
      // Most likely it has ended meanwhile.
      await this.#parts.wake();
      this.#talkative(id);
      throw error;
    });
    if (!isTaken) {
      const next =
        session.driver === 'acp'
          ? 'Look at it with `ctl agent explain`, then send the text again.'
          : 'Open its terminal with `ctl agent attach`.';
      throw fail('SESSION_STATE', `The agent did not take the text. ${next}`);
    }
    // An answer to a first-run dialog, such as for trust, leaves the first prompt to be sent.
    const isPromptPending = handle.isPromptPending && session.status === 'waiting_for_input';
    return this.#atWork(id, { inputAt, isPromptPending }, 'it was sent input');
  }

  /** `message` goes to a headless agent that is denied a permission. */
  async answer(
    stored: StoredQuestion,
    answer: string,
    message?: string,
  ): Promise<'taken' | 'gone'> {
    const { question, ref } = stored;
    const { session_id: id } = question;
    if (ref !== null) return this.#answerPermission(id, ref, answer, message);
    const { session, handle } = this.#talkative(id);
    const inputAt = this.#parts.clock.now();
    if (question.kind === 'text') {
      await this.send(id, answer);
      return 'taken';
    }
    const outcome = await this.#parts.conversation.choose(id, handle.cli, question, answer);
    if (outcome === 'stuck') throw notTaken();
    if (outcome === 'gone') return outcome;
    const isPromptPending = handle.isPromptPending && session.status !== 'idle';
    await this.#atWork(id, { inputAt, isPromptPending }, answered);
    return outcome;
  }

  async #answerPermission(
    id: string,
    ref: string,
    option: string,
    message: string | undefined,
  ): Promise<'taken' | 'gone'> {
    const { acp, requests, clock } = this.#parts;
    const { session, handle } = this.#running(id);
    const [starts, permission = ''] = ref.split('-');
    if (Number(starts) !== handle.starts) return 'gone';
    if (session.driver === 'headless') {
      const inputAt = clock.now();
      const outcome = requests.answer(id, permission, option, message);
      if (outcome === 'taken')
        await this.#atWork(id, { inputAt, isPromptPending: false }, answered);
      return outcome;
    }
    const { reply } = await acp.call(id, { do: 'answer', permission, option });
    if (reply === 'refused') throw notTaken();
    void this.#parts.wake();
    return reply === 'gone' ? reply : 'taken';
  }

  async #say({ session, handle }: Entry, text: string): Promise<boolean> {
    const { conversation, acp } = this.#parts;
    const { id, driver } = session;
    if (driver !== 'acp') return conversation.say(id, handle.cli, text);
    return (await acp.call(id, { do: 'prompt', text })).reply === 'taken';
  }

  async interrupt(id: string): Promise<void> {
    const { conversation, acp, wake } = this.#parts;
    const { session } = this.#talkative(id);
    if (session.driver === 'acp') await acp.call(id, { do: 'cancel' });
    else await conversation.interrupt(id);
    void wake();
  }

  /** Sends an agent its first prompt, if it could not be passed at its start. */
  prompt(id: string): void {
    if (this.#prompting.has(id)) return;
    const work = this.#sendPrompt(id)
      .catch((error: unknown) => {
        this.#parts.log.warn({ err: error, session: id }, 'failed to send prompt');
      })
      .finally(() => this.#prompting.delete(id));
    this.#prompting.set(id, work);
  }

  async #sendPrompt(id: string): Promise<void> {
    const { store, clock, conversation } = this.#parts;
    const entry = store.get(id);
    if (!entry?.handle.isPromptPending || isEnded(entry.session)) return;
    const { session, handle } = entry;
    const inputAt = clock.now();
    const isTaken = await conversation.say(id, handle.cli, session.prompt);
    if (!isTaken) await this.#note(id, 'its prompt was typed, but nothing shows that it was taken');
    await this.#atWork(id, { inputAt, isPromptPending: false }, 'it was given its prompt');
  }

  async #note(id: string, trouble: string): Promise<void> {
    const { store, clock } = this.#parts;
    await store.change(id, ({ session, handle }) => ({
      session: withFacts(session, { last_error: trouble }, clock.now()),
      handle,
    }));
  }

  async #atWork(
    id: string,
    input: Pick<Handle, 'inputAt' | 'isPromptPending'>,
    reason: string,
  ): Promise<Session> {
    const { store, clock, wake } = this.#parts;
    const entry = await store.change(id, ({ session, handle }) => ({
      session: isEnded(session) ? session : working(session, reason, clock.now()),
      handle: { ...handle, ...input },
    }));
    void wake();
    if (!entry) throw notFound(id);
    return entry.session;
  }

  #running(id: string): Entry {
    const entry = entryOf(this.#parts.store, id);
    const { session } = entry;
    if (!isEnded(session)) return entry;
    throw fail(
      'SESSION_STATE',
      `The session has ended (${session.status}): restart it first, with ` +
        `\`ctl agent restart ${id}\`.`,
    );
  }

  /** The session, if it is one that can be typed into. */
  #talkative(id: string): Entry {
    const entry = this.#running(id);
    if (entry.session.driver === 'headless') {
      throw fail(
        'SESSION_STATE',
        'The session is a headless run, which takes no input: wait for its end, or start one ' +
          'with the driver `tmux` or `acp`.',
      );
    }
    return entry;
  }
}

const answered = 'its question was answered';

function working(session: Session, reason: string, now: number): Session {
  const fresh = session.turn_error ? { ...session, turn_error: null } : session;
  return withStatus(fresh, 'working', reason, now);
}
