import type { Clock } from '@millrace/kit/clock';
import { systemCode } from '@millrace/kit/errors';
import type { Places } from '../transcripts/reader.js';
import type { Entry } from './handle.js';
import {
  claudeTranscript,
  codexTranscript,
  readTail,
  type TranscriptTail,
} from './transcript-tail.js';

export interface TranscriptParts {
  clock: Clock;
  places: Places;
  /** The sessions of a backend that agents other than this one have. */
  taken: (id: string) => ReadonlySet<string>;
}

/** A wide search reads many directories, so it is not done at every inspection. */
const searchMs = 5_000;

export function hasTranscripts(cli: string): cli is 'claude' | 'codex' {
  return cli === 'claude' || cli === 'codex';
}

/** Where the backend itself writes down the conversation of an agent. */
export async function findTranscript(
  { places, taken }: Pick<TranscriptParts, 'places' | 'taken'>,
  { session, handle }: Entry,
  { isWide = true } = {},
): Promise<{ path: string; id: string } | undefined> {
  const { id, backend_session_id: own, workdir: cwd } = session;
  if (handle.cli === 'codex') {
    if (!isWide) return undefined;
    return codexTranscript(places, { id: own, cwd, since: handle.startedAt, taken: taken(id) });
  }
  if (handle.cli !== 'claude' || own === null) return undefined;
  const path = await claudeTranscript(places, { id: own, cwd, isWide });
  return path === undefined ? undefined : { path, id: own };
}

/** Follows the transcript of one agent. */
export class TranscriptWatch {
  #found: { path: string; id: string } | undefined;
  #searchedAt = -Infinity;
  #size = -1;
  #tail: TranscriptTail | undefined;

  constructor(private readonly parts: TranscriptParts) {}

  /** What its end contains now; undefined while there is none. */
  async inspect(
    entry: Entry,
    { isOver }: { isOver: boolean },
  ): Promise<(TranscriptTail & { id: string }) | undefined> {
    const { cli } = entry.handle;
    if (!hasTranscripts(cli)) return undefined;
    const own = entry.session.backend_session_id;
    if (this.#found && own !== null && this.#found.id !== own) this.#found = undefined;
    this.#found ??= await this.#search(entry, isOver);
    if (!this.#found) return undefined;
    const { path, id } = this.#found;
    try {
      const { tail, size } = await readTail(cli, path, this.#size);
      if (tail) this.#tail = tail;
      this.#size = size;
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') throw error;
      this.#found = undefined;
    }
    return this.#tail && { ...this.#tail, id };
  }

  async #search(entry: Entry, isOver: boolean): Promise<{ path: string; id: string } | undefined> {
    const now = this.parts.clock.monotonic();
    // A run that has ended is searched for once more: a short one may be over before the next try.
    const isWide = isOver || now - this.#searchedAt >= searchMs;
    if (isWide) this.#searchedAt = now;
    return findTranscript(this.parts, entry, { isWide });
  }
}
