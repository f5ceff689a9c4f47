import { basename, join } from 'node:path';
import {
  countIn,
  nameOf,
  objectIn,
  textIn,
  timeIn,
  noTokens,
  type Conversations,
  type JsonObject,
  type LineReader,
  type TranscriptReader,
  type Detection,
} from './reader.js';

const backend = 'codex';

/**
 * `$CODEX_HOME/sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`. Events of the type
 * `token_count` have the running total of the conversation, so each counts with its increase. The
 * file of a fork starts with a copy of its parent conversation, with new times; so an event is
 * identified by all totals before it, from the root of the conversation on, and the copy gets the
 * same id as the original.
 */
export const codexReader: TranscriptReader = {
  backend,
  roots: ({ home, environment }) => {
    const codexHome = environment['CODEX_HOME'] || join(home, '.codex');
    return [join(codexHome, 'sessions'), join(codexHome, 'archived_sessions')];
  },
  isTranscript: (name) => name.startsWith('rollout-') && name.endsWith('.jsonl'),
  version: 2,
  markers: ['"token_count"', '"session_meta"', '"turn_context"'],
  begin: (file, carry, conversations) =>
    new CodexLines(file, (carry as Carry | null) ?? undefined, conversations),
  recall: (carry, conversations) => {
    const { session, root, isFork } = carry as Carry;
    if (isFork) conversations.learnRoot(session, root);
  },
};

/** Input, with what was cached, and output; then the cached part of the input. */
type Totals = readonly [input: number, output: number, cached: number];

interface Carry {
  session: string;
  /** The conversation that this one was copied from, or itself. */
  root: string;
  isFork: boolean;
  model: string;
  cwd: string;
  turn: string;
  /** The name of the last event; "" before the first one. */
  chain: string;
  totals: Totals | null;
}

class CodexLines implements LineReader {
  readonly #carry: Carry;

  constructor(
    file: string,
    carry: Carry | undefined,
    private readonly conversations: Conversations,
  ) {
    this.#carry = carry ? { ...carry } : newCarry(file);
  }

  carry(): Carry {
    return { ...this.#carry };
  }

  read(line: JsonObject): Detection | undefined {
    const payload = objectIn(line, 'payload');
    if (!payload) return undefined;
    switch (line['type']) {
      case 'session_meta':
        this.#begin(payload);
        return undefined;
      case 'turn_context':
        this.#turn(payload);
        return undefined;
      case 'event_msg':
        return payload['type'] === 'token_count' ? this.#count(line, payload) : undefined;
      default:
        return undefined;
    }
  }

  #begin(meta: JsonObject): void {
    const carry = this.#carry;
    const id = textIn(meta, 'id') || textIn(meta, 'session_id');
    if (id === '') return;
    const parent = textIn(meta, 'forked_from_id');
    const root = parent === '' ? id : (this.conversations.rootOf(parent) ?? parent);
    const isOwn = carry.session === '' || carry.session === id;
    if (carry.session === '') carry.session = id;
    if (isOwn) carry.cwd = textIn(meta, 'cwd') || carry.cwd;
    // Behind its own head a fork has those of its ancestors, the oldest one last.
    if (carry.chain !== '') return;
    carry.root = root;
    carry.isFork = root !== carry.session;
    if (carry.isFork) this.conversations.learnRoot(carry.session, root);
  }

  #turn(context: JsonObject): void {
    const carry = this.#carry;
    carry.model = textIn(context, 'model') || carry.model;
    carry.cwd = textIn(context, 'cwd') || carry.cwd;
    carry.turn = textIn(context, 'turn_id') || carry.turn;
  }

  #count(line: JsonObject, payload: JsonObject): Detection | undefined {
    const carry = this.#carry;
    const info = objectIn(payload, 'info');
    const total = info && totalsIn(info, 'total_token_usage');
    const last = info && totalsIn(info, 'last_token_usage');
    const grown = growth(carry, total, last);
    const at = timeIn(line);
    carry.totals = total ?? carry.totals;
    // The same totals again: they are repeated whenever another field changes.
    if (grown === undefined || (grown[0] === 0 && grown[1] === 0)) return undefined;
    if (carry.session === '') carry.session = carry.root;
    const before = carry.chain === '' ? nameOf(backend, carry.root) : carry.chain;
    // The name of an event does not change with what else is read of it.
    const nameOfTotals = (totals: Totals | undefined) => String(totals?.slice(0, 2));
    carry.chain = nameOf(before, carry.turn, nameOfTotals(total), nameOfTotals(last));
    const { session: agent, cwd, model, isFork } = carry;
    return {
      key: carry.chain,
      at,
      place: { backend, agent, cwd, model, rank: isFork ? 1 : 0 },
      tokens: { ...noTokens, input: grown[0], output: grown[1], cacheRead: grown[2] },
    };
  }
}

/** What was used since the event before. */
function growth(
  { totals: before, isFork }: Carry,
  total: Totals | undefined,
  last: Totals | undefined,
): Totals | undefined {
  if (!total) return last;
  if (!before) {
    // A fork goes on counting where its parent was; without a copy of that, the step alone is its.
    return isFork && last ? smaller(last, total) : total;
  }
  const isFall = total[0] < before[0] || total[1] < before[1];
  if (!isFall) {
    const [input, output] = [total[0] - before[0], total[1] - before[1]];
    return [input, output, Math.min(input, Math.max(0, total[2] - before[2]))];
  }
  // The counter was reset: at most this much was used since.
  return last ? smaller(last, total) : total;
}

function smaller(a: Totals, b: Totals): Totals {
  return [Math.min(a[0], b[0]), Math.min(a[1], b[1]), Math.min(a[2], b[2])];
}

function totalsIn(info: JsonObject, name: string): Totals | undefined {
  const usage = objectIn(info, name);
  if (!usage) return undefined;
  const input = countIn(usage, 'input_tokens');
  const cached = Number(usage['cached_input_tokens']) || 0;
  return [input, countIn(usage, 'output_tokens'), Math.max(0, Math.min(input, cached))];
}

function newCarry(file: string): Carry {
  const name = basename(file, '.jsonl');
  // Until the file says so itself: `rollout-2026-01-15T09-30-00-<id>`.
  const id = /^rollout-\d{4}-\d\d-\d\dT[\d-]{8}-(.+)$/.exec(name)?.[1] ?? name;
  return {
    session: '',
    root: id,
    isFork: false,
    model: 'unknown',
    cwd: '',
    turn: '',
    chain: '',
    totals: null,
  };
}
