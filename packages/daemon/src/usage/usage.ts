import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { webhookGuard, type Outbound } from '@millrace/kit/outbound';
import { createOutbound } from '@millrace/wire/http1';
import { failed, type UsageAdapter, type Reading, type UsageRow } from './adapter.js';
import {
  documentOf,
  entryOf,
  unsupportedEntry,
  type Observation,
  UsageMemory,
  type UsageDocument,
} from './document.js';
import { claudeUsage } from './claude.js';
import { codexUsage } from './codex.js';
import { cursorUsage } from './cursor.js';
import { geminiUsage } from './gemini.js';
import { Forecasts } from './forecast.js';
import type { Logins } from './provider-call.js';

export interface UsageOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** The user's home directory, where CLIs store their logins. */
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Environment of the codex program; default: `environment`. */
  readonly codexEnvironment?: Readonly<Record<string, string>>;
  readonly providers: ProviderSettings;
  /** Current rows of the registry. Must not trigger detection. */
  readonly rows: () => Promise<readonly UsageRow[]>;
  /** HTTP client; default: a new one. */
  readonly outbound?: Outbound;
  /** Called when a reading changes. */
  readonly onChange?: () => void;
}

const perProviderMs = 3_000;
const inAllMs = 5_000;

/** Reports the usage windows of subscription backends. */
export class Usage {
  readonly #outbound: Outbound;
  readonly #providers: ReturnType<typeof openProviders>;
  readonly #memory: UsageMemory;
  readonly #forecasts: Forecasts;
  readonly #underway = new Map<string, Promise<Observation>>();

  constructor(private readonly options: UsageOptions) {
    const { clock, environment, codexEnvironment, home, providers } = options;
    this.#outbound = options.outbound ?? createOutbound({ guard: webhookGuard, clock });
    this.#providers = openProviders(
      providers,
      { home, environment, codexEnvironment },
      { clock, outbound: this.#outbound },
    );
    this.#memory = new UsageMemory(clock);
    this.#forecasts = new Forecasts(clock);
  }

  async read({ refresh = false }: { refresh?: boolean } = {}): Promise<UsageDocument> {
    const { clock, rows } = this.options;
    const endAt = clock.monotonic() + inAllMs;
    const all = await rows();
    const subscribed = all
      .filter(({ tier }) => tier === 'subscription')
      .sort((a, b) => (a.id < b.id ? -1 : 1));
    const limitMs = Math.max(0, Math.min(perProviderMs, endAt - clock.monotonic()));
    const entries = await Promise.all(subscribed.map((row) => this.#entry(row, refresh, limitMs)));
    return documentOf(entries, clock.now());
  }

  /** The last readings, without a call to any provider: percent by backend and scope. */
  known(): { backend: string; scope: string; percent: number }[] {
    return this.#memory
      .readings()
      .flatMap(([backend, { reading }]) =>
        reading.windows.flatMap(({ scope, usedPercent: percent }) =>
          percent === null ? [] : [{ backend, scope, percent }],
        ),
      );
  }

  /** Aborts calls in flight. */
  async close(): Promise<void> {
    await Promise.all([
      this.#providers.close(),
      this.options.outbound ? undefined : this.#outbound.close(),
    ]);
  }

  async #entry(row: UsageRow, refresh: boolean, limitMs: number) {
    const adapter = this.#providers.adapterFor(row.id);
    if (!adapter) return unsupportedEntry(row);
    const recalled = this.#memory.cached(row.id, refresh);
    const observation = recalled ?? (await this.#observe(row, adapter, limitMs));
    return entryOf({
      row,
      adapter,
      observation,
      cached: recalled !== undefined,
      lastGood: this.#memory.lastGood(row.id),
      fullAt: (window) => this.#forecasts.fullAt(row.id, window),
    });
  }

  /** Concurrent callers share one call. */
  #observe(row: UsageRow, adapter: UsageAdapter, limitMs: number): Promise<Observation> {
    const shared = this.#underway.get(row.id);
    if (shared) return shared;
    const observing = this.#readWithin(row, adapter, limitMs)
      .then((reading) => {
        this.#logFailure(row, reading);
        const before = this.#memory.last(row.id);
        const observation = this.#memory.save(row.id, reading);
        if (reading.ok) this.#forecasts.note(row.id, reading.windows);
        if (!isDeepStrictEqual(before?.reading, reading)) this.options.onChange?.();
        return observation;
      })
      .finally(() => this.#underway.delete(row.id));
    this.#underway.set(row.id, observing);
    return observing;
  }

  async #readWithin(row: UsageRow, adapter: UsageAdapter, limitMs: number): Promise<Reading> {
    const { clock } = this.options;
    const abort = new AbortController();
    const late = new Promise<Reading>((resolve) => {
      abort.signal.addEventListener('abort', () => {
        resolve(failed('timeout', 'the provider did not answer in time'));
      });
    });
    const timer = clock.after(limitMs, () => abort.abort());
    try {
      const reading = adapter.read(row, { signal: abort.signal, timeoutMs: perProviderMs });
      return await Promise.race([reading, late]);
    } catch (error) {
      this.options.log.error({ backend: row.id, err: error }, 'failed to read usage');
      return failed('error', 'failed to read usage; see the log of the daemon');
    } finally {
      timer.cancel();
    }
  }

  #logFailure({ id }: UsageRow, reading: Reading): void {
    if (reading.ok) return;
    const { status, error, retryAfterMs } = reading;
    const isTrouble = ['unavailable', 'timeout', 'error'].includes(status);
    const fields = { backend: id, status, reason: error, retry_after_ms: retryAfterMs };
    this.options.log[isTrouble ? 'warn' : 'debug'](fields, 'usage unknown');
  }
}

/** The settings `providers.*`. URLs are complete. */
export interface ProviderSettings {
  readonly codex: { readonly command: string };
  readonly cursor: { readonly url: string };
  /** For `gemini` and `agy` alike. */
  readonly gemini: { readonly url: string };
  readonly claude: { readonly url: string };
}

/** The adapters by backend id. */
function openProviders(
  settings: ProviderSettings,
  logins: Logins,
  { clock, outbound }: { clock: Clock; outbound: Outbound },
) {
  const tools = { outbound, now: () => clock.now() };
  const codex = codexUsage(settings.codex.command, logins, clock);
  const adapters = new Map<string, UsageAdapter>([
    ['agy', geminiUsage('agy', settings.gemini.url, logins, tools)],
    ['claude', claudeUsage(settings.claude.url, logins, tools)],
    ['codex', codex],
    ['cursor-agent', cursorUsage(settings.cursor.url, logins, tools)],
    ['gemini', geminiUsage('gemini', settings.gemini.url, logins, tools)],
  ]);
  return { adapterFor: (id: string) => adapters.get(id), close: () => codex.close() };
}
