import type { DaemonSchema } from '@millrace/contract/daemon';

export type InboxNote = DaemonSchema<'InboxNote'>;
export type NoteKind = DaemonSchema<'NoteKind'>;

/** An alert for the user. */
export interface Alert {
  kind: NoteKind;
  severity: DaemonSchema<'Severity'>;
  /** One line. */
  title: string;
  /** Details; may be empty. */
  body: string;
  /** The session concerned; null when none. */
  agentId: string | null;
  /** The question to answer, if there is one. */
  questionId?: string | undefined;
}

/**
 * Deduplication key: an alert is raised unless the last one of this agent and topic had the same
 * value. Stored together with the note, so it survives restarts.
 */
export interface Once {
  topic: string;
  value: string;
  /** Names of the event itself: an alert with a name that was raised before is never raised again. */
  keys?: readonly string[];
}

/** The part of Notify that raises alerts. */
export interface AlertSink {
  /** Resolves when the note is on disk. Desktop and webhook delivery follow asynchronously. */
  raise(alert: Alert, once?: Once): Promise<void>;
}

/** Optional channels in addition to the inbox, which has every alert. */
export const channels: Readonly<Record<NoteKind, { desktop: boolean; webhook: boolean }>> = {
  waiting_for_input: { desktop: true, webhook: true },
  stuck_idle: { desktop: true, webhook: true },
  orphaned: { desktop: true, webhook: true },
  errored: { desktop: true, webhook: true },
  context_warning: { desktop: true, webhook: true },
  context_critical: { desktop: true, webhook: true },
  ci_failed: { desktop: true, webhook: false },
  branch_merged: { desktop: false, webhook: false },
  branch_behind: { desktop: false, webhook: false },
};

const maxTitleLength = 200;
const maxBodyLength = 2000;

/** Names and reasons come from agents, so control characters are removed and texts are cut. */
export function tidied(alert: Alert): Alert {
  return {
    ...alert,
    title: cut(plain(alert.title).replaceAll(/\s+/g, ' '), maxTitleLength),
    body: cut(plain(alert.body), maxBodyLength),
  };
}

/** Title and body as one text. */
export function textOf({ title, body }: Pick<Alert, 'title' | 'body'>): string {
  return body === '' ? title : `${title}\n\n${body}`;
}

function plain(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[^\P{Cc}\n]/gu, ' ')
    .trim();
}

function cut(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  // Do not split a surrogate pair.
  return `${text.slice(0, maxLength - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}
