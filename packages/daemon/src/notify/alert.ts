import type { DaemonSchema } from '@millrace/contract/daemon';

export type InboxNote = DaemonSchema<'InboxNote'>;
export type NoteKind = DaemonSchema<'NoteKind'>;

/** Something that the person in charge should hear of. */
export interface Alert {
  kind: NoteKind;
  severity: DaemonSchema<'Severity'>;
  /** One line. */
  title: string;
  /** The rest of it; may be empty. */
  body: string;
  /** The session that it is about; null when none. */
  agentId: string | null;
}

/**
 * Tells an alert from its repetitions: it is raised unless the last one of this agent and topic
 * had the same value. It is remembered together with the note, so a restart changes nothing.
 */
export interface Once {
  topic: string;
  value: string;
}

/** Whoever only raises alerts needs no more. */
export interface AlertSink {
  /** Resolves when the note is on disk. Desktop and webhook follow in their own time. */
  raise(alert: Alert, once?: Once): Promise<void>;
}

/** Where alerts go beside the inbox, which has them all. */
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

/** Names and reasons come from agents: no control characters, no endless texts. */
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
  // No half of a character that is written as two.
  return `${text.slice(0, maxLength - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}
