import { isAbsolute, relative } from 'node:path';
import type { KnownPlace } from './rows.js';

/** History of one agent session, from its transcripts. */
export interface SessionHistory {
  id: string;
  backend: string;
  model: string;
  repo: string;
  /** Times of the first and the last message. */
  firstAt: number;
  lastAt: number;
  /** Its last message reports a failure. */
  endsInFailure: boolean;
  /** Edited files, as paths inside the repository, in order. */
  files: readonly string[];
}

export interface SeenMessage {
  at: number;
  place: KnownPlace;
  files: readonly string[];
  isFailure: boolean;
}

/** Placeholder in transcripts for an unknown model. */
const noModel = 'unknown';

/** Maximum number of edited files per session. */
const maxFiles = 300;

export function historyKey({ backend, agent }: Pick<KnownPlace, 'backend' | 'agent'>): string {
  return `${backend}\0${agent}`;
}

/** Adds a message to the history. Idempotent. */
export function withMessage(
  before: SessionHistory | undefined,
  { at, place, files, isFailure }: SeenMessage,
): SessionHistory {
  const history = before ?? {
    id: place.agent,
    backend: place.backend,
    model: place.model,
    repo: place.repo,
    firstAt: at,
    lastAt: at,
    endsInFailure: isFailure,
    files: [],
  };
  const isLast = at >= history.lastAt;
  const inside = files.flatMap((file) => pathInside(history.repo, file));
  return {
    ...history,
    // A failure is reported under no model.
    model: isFailure || !(isLast || history.model === noModel) ? history.model : place.model,
    firstAt: Math.min(history.firstAt, at),
    lastAt: Math.max(history.lastAt, at),
    endsInFailure: isLast ? isFailure : history.endsInFailure,
    files: inside.length === 0 ? history.files : withFiles(history.files, inside),
  };
}

function withFiles(files: readonly string[], more: readonly string[]): readonly string[] {
  const all = new Set([...files, ...more]);
  return all.size === files.length ? files : [...all].sort().slice(0, maxFiles);
}

function pathInside(repo: string, file: string): string[] {
  const path = isAbsolute(file) ? relative(repo, file) : file;
  return path === '' || path.startsWith('..') || isAbsolute(path) ? [] : [path];
}
