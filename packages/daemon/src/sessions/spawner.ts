import type { World } from '@millrace/kit/world';
import type { Backend } from '../core/backend.js';
import { fail } from '../core/refusals.js';
import type { Backends } from '../registry/backends.js';
import { findProgram } from '../registry/search-path.js';
import type { AcpSources } from './cli/acp-sources.js';
import type { SessionStore } from './session-store.js';
import { BudgetGate, type BudgetParts } from './budget-gate.js';
import type { ExtraCli } from './cli/command-lines.js';
import type { Session, SpawnOrigin, SpawnRequest } from './port.js';
import {
  backendFor,
  checkRun,
  discardEntry,
  worktreeTargetFor,
  hashOf,
  invalid,
  nameFrom,
  newEntry,
} from './spawning.js';
import { freeName, isLive } from '../core/session-names.js';

export interface SpawnerParts extends World {
  store: SessionStore;
  backends: Backends;
  dataDir: string;
  environment: Readonly<Record<string, string | undefined>>;
  extra: readonly ExtraCli[];
  budget: Omit<BudgetParts, 'sessions'>;
  runsHooks: boolean;
  acp: Pick<AcpSources, 'find'>;
  /** `drivers.default`. */
  defaultDriver: () => 'auto' | Session['driver'];
}

/** Checks spawn requests and creates their sessions. */
export class Spawner {
  readonly #parts: SpawnerParts;
  readonly #gate: BudgetGate;
  readonly #names: NameReservations;
  /** Requests that are being carried out, by their keys. */
  readonly #spawning = new Map<string, Promise<unknown>>();

  constructor(parts: SpawnerParts) {
    this.#parts = parts;
    const sessions = () => parts.store.all().map(({ session }) => session);
    this.#gate = new BudgetGate({ ...parts.budget, sessions });
    this.#names = new NameReservations(sessions);
  }

  async spawn(
    request: SpawnRequest,
    origin: SpawnOrigin,
  ): Promise<{ session: Session; isReplay: boolean }> {
    const { idempotencyKey: key } = origin;
    if (key === undefined) return { session: await this.#spawn(request, origin), isReplay: false };
    // Requests with the same key wait for the first one, and then get the stored session.
    for (;;) {
      const other = this.#spawning.get(key);
      if (!other) break;
      await other.catch(() => undefined);
    }
    const work = this.#spawnOnce(key, request, origin);
    this.#spawning.set(key, work);
    try {
      return await work;
    } finally {
      this.#spawning.delete(key);
    }
  }

  async #spawnOnce(key: string, request: SpawnRequest, origin: SpawnOrigin) {
    const known = await this.#parts.store.spawnKey(key);
    const there = known && this.#parts.store.get(known.sessionId);
    if (known && there) {
      if (known.hash === hashOf(request)) return { session: there.session, isReplay: true };
      throw fail(
        'IDEMPOTENCY_CONFLICT',
        `The idempotency key was used for another request, which started ${known.sessionId}: ` +
          'use a new key.',
      );
    }
    return { session: await this.#spawn(request, origin), isReplay: false };
  }

  async #spawn(request: SpawnRequest, origin: SpawnOrigin): Promise<Session> {
    const { backends, extra, dataDir, clock, random } = this.#parts;
    const backend = await backendFor(backends, request.backend);
    const driver = await this.#driverFor(request, backend);
    checkRun(backend.id, driver, request, extra);
    if (request.parent_id !== undefined && !this.#parts.store.get(request.parent_id)) {
      throw invalid(
        'parent_id',
        'is not the id of a session; GET /api/v1/sessions lists all sessions',
      );
    }
    const target = await worktreeTargetFor(this.#parts, request);
    const entry = await this.#gate.pass(request.force ?? false, async () => {
      const now = clock.now();
      const id = random.ulid(now);
      const token = Buffer.from(random.bytes(16)).toString('hex');
      const { idempotencyKey } = origin;
      const key =
        idempotencyKey === undefined ? undefined : { name: idempotencyKey, hash: hashOf(request) };
      return this.#names.reserve(request.name ?? nameFrom(request.prompt), async (name) => {
        const made = await newEntry(
          { id, now, git: this.#parts, dataDir, token, extra },
          { backend: backend.id, driver, target },
          { ...request, name },
          origin,
        );
        await this.#parts.store.add(made, key).catch(async (error: unknown) => {
          await discardEntry(this.#parts, made);
          throw error;
        });
        return made;
      });
    });
    return entry.session;
  }

  /** The requested driver; else the configured one where it works, else acp, tmux, headless. */
  async #driverFor({ driver }: SpawnRequest, backend: Backend): Promise<Session['driver']> {
    const { environment } = this.#parts;
    const defaultDriver = this.#parts.defaultDriver();
    const hasTmux = (await findProgram('tmux', environment['PATH'])) !== undefined;
    if (driver === 'tmux' && !hasTmux) {
      throw invalid('driver', 'needs tmux, which is not installed: install it, or use "headless"');
    }
    if (driver === 'acp' && !(await this.#hasAcp(backend, true))) throw noAcp(backend.id);
    if (driver !== undefined) return driver;
    if (defaultDriver === 'headless') return 'headless';
    if (defaultDriver === 'tmux' && hasTmux) return 'tmux';
    if (defaultDriver !== 'tmux' && (await this.#hasAcp(backend))) return 'acp';
    return hasTmux ? 'tmux' : 'headless';
  }

  /** Asks the program itself, once, and stores the answer for the list of backends. */
  async #hasAcp(backend: Backend, isRequested = false): Promise<boolean> {
    const found = await this.#parts.acp.find(backend, { isRequested });
    await this.#parts.backends.noteAcp(backend.id, found);
    return found !== undefined;
  }
}

function noAcp(backend: string): Error {
  return invalid(
    'driver',
    `cannot be "acp": the backend "${backend}" does not speak the Agent Client Protocol. Install ` +
      'an adapter, or name one in `agents.adapters`, then run `ctl backend rescan`',
  );
}

/** Keeps names unique among live sessions, also while several are being spawned. */
export class NameReservations {
  readonly #reserved = new Set<string>();

  constructor(private readonly sessions: () => readonly Session[]) {}

  /** Runs with the wanted name or a free variant of it, which stays reserved meanwhile. */
  async reserve<Result>(wanted: string, run: (name: string) => Promise<Result>): Promise<Result> {
    const live = this.sessions().filter(isLive);
    const name = freeName(wanted, new Set([...live.map((each) => each.name), ...this.#reserved]));
    this.#reserved.add(name);
    try {
      return await run(name);
    } finally {
      this.#reserved.delete(name);
    }
  }
}
