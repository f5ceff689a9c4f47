import type { SessionUpdate } from '@agentclientprotocol/sdk';

const maxTextLength = 2_000;

/**
 * A failure that an agent reports beside the answer: codex-acp ends a turn that failed with
 * `end_turn`, after an update with the thread status `systemError` and the error as a message.
 */
export class ReportedFailure {
  #text: string | undefined;

  clear(): void {
    this.#text = undefined;
  }

  take(update: SessionUpdate): void {
    if (update.sessionUpdate === 'session_info_update') {
      const status = threadStatusIn(update._meta);
      if (status === 'systemError') this.#text ??= '';
      else if (status !== undefined) this.#text = undefined;
      return;
    }
    const isMessage = update.sessionUpdate === 'agent_message_chunk';
    if (this.#text === undefined || !isMessage || update.content.type !== 'text') return;
    this.#text = (this.#text + update.content.text).slice(0, maxTextLength);
  }

  /** What went wrong in this turn, if the agent said so. */
  get text(): string | undefined {
    if (this.#text === undefined) return undefined;
    return this.#text.trim() || 'the agent reports a system error';
  }
}

function threadStatusIn(meta: unknown): string | undefined {
  const { codex } = (meta ?? {}) as { codex?: { threadStatus?: { type?: unknown } } | null };
  const type = codex?.threadStatus?.type;
  return typeof type === 'string' ? type : undefined;
}
