import type { Database, RowWriter } from '@millrace/engine';
import { historyKey, withMessage, type SessionHistory } from './session-history.js';
import { GitRoots } from '../transcripts/find-files.js';
import {
  nameOf,
  greatest,
  isEarlier,
  noTokens,
  tokenKinds,
  type Detection,
  type Tokens,
} from '../transcripts/reader.js';
import type { FileState } from '../transcripts/scan-file.js';
import type { Batch, TallyKeeper } from '../transcripts/scanner.js';
import * as row from './rows.js';
import { PlaceNumbers, type KnownPlace } from './rows.js';

/** Offsets of all time zones are multiples of this. */
export const slotMs = 15 * 60_000;

/** How far back messages are stored individually: the trailing week plus a day. */
const recentMs = 8 * 86_400_000;
const maxDeletedPerCommit = 1_000;

export interface Cell {
  slot: number;
  place: number;
  tokens: Tokens;
}

/**
 * Token counts of every transcript message, stored on disk, each message once. A batch is one
 * commit: counts, sums and read positions change atomically. The sums, one per session and quarter
 * of an hour, are also cached in memory.
 */
export class Tally implements TallyKeeper {
  readonly #states = new Map<string, FileState>();
  readonly #cells = new Map<string, Cell>();
  readonly #histories = new Map<string, SessionHistory>();
  readonly #places = new PlaceNumbers();
  readonly #repos = new GitRoots();
  #version = 0;

  private constructor(private readonly database: Database) {}

  static open(database: Database): Tally {
    const tally = new Tally(database);
    tally.#load();
    return tally;
  }

  get states(): ReadonlyMap<string, FileState> {
    return this.#states;
  }

  /** Changes whenever a sum does. */
  get version(): number {
    return this.#version;
  }

  cells(): Iterable<Cell> {
    return this.#cells.values();
  }

  histories(): Iterable<SessionHistory> {
    return this.#histories.values();
  }

  place(number: number): KnownPlace {
    return this.#places.at(number);
  }

  /** Usage from `from` to `to`, both inclusive, by place. */
  used(from: number, to: number): Map<number, { input: number; output: number }> {
    const sums = new Map<number, { input: number; output: number }>();
    const range = { start: row.recentKey(from), end: row.recentKey(to + 1) };
    this.database.readRows((rows) => {
      for (const { value } of rows.range(range)) {
        const { place, input, output } = row.decodeRecent(value);
        const sum = sums.get(place);
        if (!sum) sums.set(place, { input, output });
        else {
          sum.input += input;
          sum.output += output;
        }
      }
    });
    return sums;
  }

  /** The first and the last message of a backend between two times, both inclusive. */
  span(backend: string, from: number, to: number): { first: number; last: number } | undefined {
    const range = { start: row.recentKey(from), end: row.recentKey(to + 1) };
    let span: { first: number; last: number } | undefined;
    this.database.readRows((rows) => {
      for (const { key, value } of rows.range(range)) {
        if (this.#places.at(row.decodeRecent(value).place).backend !== backend) continue;
        const at = row.timeOfRecent(key);
        span = { first: span?.first ?? at, last: at };
      }
    });
    return span;
  }

  async commit({ detections, states, removed }: Batch): Promise<void> {
    for (const { place } of detections) {
      if (this.#places.numberOf(place) !== undefined) continue;
      const repo = await this.#repos.rootOf(place.cwd);
      this.#places.add({ ...place, repo: repo || 'unknown' });
    }
    const newPlaces = this.#places.unsaved();
    const histories = this.#historiesWith(detections);
    const changed = await this.database.transact(({ rows, now }) => {
      for (const number of newPlaces) {
        rows.put(row.placeKey(number), Buffer.from(JSON.stringify(this.#places.at(number))));
      }
      for (const state of states) {
        rows.put(row.hashKey('t', nameOf(state.path)), Buffer.from(JSON.stringify(state)));
      }
      for (const path of removed) rows.remove(row.hashKey('t', nameOf(path)));
      for (const [key, history] of histories) {
        rows.put(row.hashKey('h', nameOf(key)), Buffer.from(JSON.stringify(history)));
      }
      const sums = new CellChanges();
      for (const detection of detections) this.#count(rows, sums, detection, now - recentMs);
      deleteOld(rows, now - recentMs);
      return sums.write(rows);
    });
    this.#places.saved(newPlaces);
    for (const state of states) this.#states.set(state.path, state);
    for (const path of removed) this.#states.delete(path);
    for (const [key, history] of histories) this.#histories.set(key, history);
    for (const cell of changed) this.#setCell(cell);
    if (changed.length > 0) this.#version += 1;
  }

  /** Histories of the sessions of these messages. */
  #historiesWith(detections: readonly Detection[]): Map<string, SessionHistory> {
    const changed = new Map<string, SessionHistory>();
    for (const { at, place: seen, files = [], isFailure = false } of detections) {
      const place = this.#places.at(this.#places.numberOf(seen)!);
      const key = historyKey(place);
      const before = changed.get(key) ?? this.#histories.get(key);
      changed.set(key, withMessage(before, { at, place, files, isFailure }));
    }
    return changed;
  }

  /** Counts a message, or corrects its earlier count. */
  #count(rows: RowWriter, sums: CellChanges, detection: Detection, since: number): void {
    const key = row.hashKey('m', detection.key);
    const bytes = rows.get(key);
    const before = bytes && row.decodeMessage(bytes);
    const after = this.#joined(before, detection);
    if (before) {
      if (row.encodeMessage(after).equals(bytes)) return;
      sums.add(before, -1);
      rows.remove(row.recentKey(before.at, detection.key));
    }
    sums.add(after, 1);
    rows.put(key, row.encodeMessage(after));
    if (after.at >= since) {
      rows.put(row.recentKey(after.at, detection.key), row.encodeRecent(after));
    }
  }

  #joined(before: row.Counted | undefined, detection: Detection): row.Counted {
    const place = this.#places.numberOf(detection.place)!;
    const seen = { at: detection.at, place, tokens: detection.tokens };
    if (!before) return seen;
    const old = { at: before.at, place: this.#places.at(before.place) };
    const owner = isEarlier(detection, old) ? seen : before;
    const tokens = greatest(before.tokens, detection.tokens);
    return { at: owner.at, place: owner.place, tokens };
  }

  #setCell(cell: Cell): void {
    const name = cellName(cell);
    if (isZero(cell.tokens)) this.#cells.delete(name);
    else this.#cells.set(name, cell);
  }

  #load(): void {
    this.database.readRows((rows) => {
      for (const { key, value } of rows.range(row.rowsOf('p'))) {
        this.#places.load(row.placeOfKey(key), JSON.parse(value.toString()) as KnownPlace);
      }
      for (const { key, value } of rows.range(row.rowsOf('c'))) {
        this.#setCell({ ...row.cellOfKey(key), tokens: row.decodeTokens(value) });
      }
      for (const { value } of rows.range(row.rowsOf('h'))) {
        const history = JSON.parse(value.toString()) as SessionHistory;
        this.#histories.set(historyKey({ backend: history.backend, agent: history.id }), history);
      }
      for (const { value } of rows.range(row.rowsOf('t'))) {
        const state = JSON.parse(value.toString()) as FileState;
        this.#states.set(state.path, state);
      }
    });
  }
}

/** Changes of the sums in one batch. */
class CellChanges {
  readonly #changes = new Map<string, Cell>();

  add({ at, place, tokens }: row.Counted, sign: 1 | -1): void {
    const slot = Math.floor(at / slotMs);
    const name = cellName({ slot, place });
    const existing = this.#changes.get(name);
    if (existing) addTokens(existing.tokens, tokens, sign);
    else {
      const change = { slot, place, tokens: { ...noTokens } };
      addTokens(change.tokens, tokens, sign);
      this.#changes.set(name, change);
    }
  }

  /** Returns the new sums. */
  write(rows: RowWriter): Cell[] {
    return [...this.#changes.values()].map(({ slot, place, tokens: change }) => {
      const key = row.cellKey(slot, place);
      const bytes = rows.get(key);
      const tokens = bytes ? row.decodeTokens(bytes) : { ...noTokens };
      addTokens(tokens, change, 1);
      if (isZero(tokens)) rows.remove(key);
      else rows.put(key, row.encodeTokens(tokens));
      return { slot, place, tokens };
    });
  }
}

function addTokens(sum: Tokens, tokens: Tokens, sign: 1 | -1): void {
  for (const kind of tokenKinds) sum[kind] += sign * tokens[kind];
}

function isZero({ input, output, cacheRead, cacheWrite }: Tokens): boolean {
  return input === 0 && output === 0 && cacheRead === 0 && cacheWrite === 0;
}

function cellName({ slot, place }: Pick<Cell, 'slot' | 'place'>): string {
  return `${slot}:${place}`;
}

/** Deletes individual messages outside the window; their sums stay. */
function deleteOld(rows: RowWriter, before: number): void {
  const range = {
    start: row.rowsOf('r').start,
    end: row.recentKey(Math.max(0, before)),
    limit: maxDeletedPerCommit,
  };
  const old = [...rows.range(range)];
  for (const { key } of old) rows.remove(key);
}
