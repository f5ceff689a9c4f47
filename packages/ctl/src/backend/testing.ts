import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { systemClock } from '@millrace/kit/clock';
import { messageOf, Refusal, UsageError } from '@millrace/kit/errors';
import { parseDuration, UnitError } from '@millrace/kit/units';
import { hasEnded } from '../agent/find-session.js';
import { asTyped } from '../base/command-name.js';
import { rest } from '../base/rest.js';
import type { Flags, Tools } from '../base/tools.js';
import { daemonApi, type DaemonApi, type DaemonFlags } from '../daemon/api.js';
import { printable } from '../render/text.js';

type Session = DaemonSchema<'Session'>;

export type TestFlags = DaemonFlags & Flags<'prompt timeout'> & { driver?: Session['driver'] };

const steps = ['start', 'prompt', 'answer', 'stop'] as const;

interface StepReport {
  step: (typeof steps)[number];
  ok: boolean;
  /** What was seen, in order. */
  saw: string[];
}

const pollMs = 200;
/** Longer than the daemon tries to deliver a prompt. */
const defaultTimeoutMs = 120_000;
const defaultPrompt = 'Reply with the word ready.';

/** Starts an agent, gives it a prompt, waits for its answer, stops it, and prints what it saw. */
export async function testBackend(id: string, flags: TestFlags, tools: Tools): Promise<void> {
  const timeoutMs = timeoutIn(flags.timeout);
  const api = await daemonApi(flags, tools);
  const { backends } = await api.call('listBackends');
  if (!backends.some((backend) => backend.id === id)) {
    throw new Refusal(
      'BACKEND_NOT_FOUND',
      asTyped(`There is no backend "${id}". List them with \`ctl backend list\`.`),
    );
  }
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'millrace-test-')));
  const walk = new Walk(api, { id, cwd, timeoutMs, ...flags }, tools);
  try {
    await walk.run();
  } finally {
    await walk.tidy();
    rmSync(cwd, { recursive: true, force: true });
  }
  const ok = walk.reports.length === steps.length && walk.reports.every((each) => each.ok);
  if (!ok) tools.exitWith(1);
  const outcome = ok ? 'works' : `failed at the step ${walk.reports.at(-1)?.step}`;
  tools.terminal.show({ backend: id, ok, steps: walk.reports }, `The backend ${id} ${outcome}.\n`);
}

function timeoutIn(text: string | undefined): number {
  if (text === undefined) return defaultTimeoutMs;
  try {
    return parseDuration(text);
  } catch (error) {
    if (!(error instanceof UnitError)) throw error;
    throw new UsageError(`--timeout ${text}: ${messageOf(error)}`);
  }
}

interface WalkOptions {
  id: string;
  cwd: string;
  timeoutMs: number;
  driver?: Session['driver'];
  prompt?: string;
}

class Walk {
  readonly reports: StepReport[] = [];
  #session: Session | undefined;

  constructor(
    private readonly api: DaemonApi,
    private readonly options: WalkOptions,
    private readonly tools: Tools,
  ) {}

  async run(): Promise<void> {
    const works = { start: this.#start, prompt: this.#prompt, answer: this.#answer };
    for (const step of steps) {
      const work = step === 'stop' ? this.#stop : works[step];
      if (!(await this.#step(step, (saw) => work.call(this, saw)))) return;
    }
  }

  /** Removes the session, whatever happened. */
  async tidy(): Promise<void> {
    const { id } = this.#session ?? {};
    if (id !== undefined) await this.api.call('deleteSession', { path: { id } });
  }

  async #step(
    step: StepReport['step'],
    work: (saw: (line: string) => void) => Promise<void>,
  ): Promise<boolean> {
    const report: StepReport = { step, ok: true, saw: [] };
    this.reports.push(report);
    const { out, json } = this.tools.terminal;
    const say = (line: string) => {
      report.saw.push(line);
      if (!json) out.write(`${step.padEnd(7)} ${printable(line)}\n`);
    };
    try {
      await work(say);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      report.ok = false;
      say(`failed: ${error.detail}`);
    }
    return report.ok;
  }

  async #start(saw: (line: string) => void): Promise<void> {
    const { id: backend, cwd, driver, prompt = defaultPrompt } = this.options;
    const name = `test ${backend}`;
    this.#session = await this.api.call('spawnSession', {
      body: { backend, cwd, name, prompt, ...(driver && { driver }) },
    });
    const { driver: chosen, pid } = await this.#until(
      (session) => session.pid !== null || session.status !== 'spawning',
    );
    this.#expectAlive(({ last_error: error }) => !error?.includes('its prompt'));
    saw(`started with the driver ${chosen}${pid === null ? '' : `, process ${pid}`}`);
  }

  async #prompt(saw: (line: string) => void): Promise<void> {
    const { status } = await this.#until((session) => session.status !== 'spawning');
    this.#expectAlive();
    saw(`took its prompt; it is ${status}`);
  }

  async #answer(saw: (line: string) => void): Promise<void> {
    const answered = new Set<string>();
    for (;;) {
      const { status } = await this.#until((session) => session.status !== 'working');
      this.#expectAlive();
      if (status !== 'waiting_for_input') break;
      await this.#answerQuestion(answered, saw);
    }
    const { id, model, context_tokens: tokens, ...session } = this.#session!;
    const { lines } = await this.api.call('getSessionOutput', {
      path: { id },
      query: { limit: 5 },
    });
    for (const line of lines) if (line.trim() !== '') saw(`| ${line}`);
    const figures = tokens === null ? 'no token counts' : `${tokens} tokens of context`;
    saw(`is ${session.status}: ${session.status_reason ?? ''}; ${model ?? 'no model'}, ${figures}`);
  }

  async #answerQuestion(answered: Set<string>, saw: (line: string) => void): Promise<void> {
    const { id: session } = this.#session!;
    const query = { session_id: session, status: 'open' as const };
    const { questions } = await this.api.call('listQuestions', { query });
    const next = questions.find(({ id }) => !answered.has(id));
    if (!next) {
      await rest(pollMs);
      return;
    }
    answered.add(next.id);
    const [option] = next.options;
    const labels = next.options.map(({ label }) => label).join(', ') || 'a text';
    saw(`asks: ${next.title} (${labels}); answered with ${option?.label ?? 'yes'}`);
    const body = option ? { option_id: option.id } : { text: 'yes' };
    await this.api.call('answerQuestion', { path: { id: next.id }, body });
  }

  async #stop(saw: (line: string) => void): Promise<void> {
    const { id } = this.#session!;
    const wasOver = hasEnded(this.#session!);
    const stopped = wasOver ? this.#session! : await this.api.call('stopSession', { path: { id } });
    saw(wasOver ? 'had ended by itself' : `is ${stopped.status}: ${stopped.status_reason ?? ''}`);
  }

  #expectAlive(isOfStep: (session: Session) => boolean = () => true): void {
    const { status, last_error: error, status_reason: reason, ...session } = this.#session!;
    const hasFailed = ['errored', 'orphaned', 'rate_limited'].includes(status);
    if (!hasFailed || !isOfStep(this.#session!)) return;
    const until = session.limited_until === null ? '' : ` until ${session.limited_until}`;
    throw new Refusal('SESSION_STATE', `${error ?? reason ?? 'no reason'} (${status}${until})`);
  }

  async #until(isSo: (session: Session) => boolean): Promise<Session> {
    const { id } = this.#session!;
    const deadline = systemClock.monotonic() + this.options.timeoutMs;
    for (;;) {
      this.#session = await this.api.call('getSession', { path: { id } });
      const session = this.#session;
      if (isSo(session)) return session;
      if (systemClock.monotonic() >= deadline) {
        const reason = session.status_reason ?? 'nothing is known';
        throw new Refusal('TIMEOUT', `it is still ${session.status} (${reason}); see --timeout`);
      }
      await rest(pollMs, this.tools.lifecycle.interrupted);
    }
  }
}
