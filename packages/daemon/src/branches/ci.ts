import { jsonIn } from '@millrace/kit/errors';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { complaint, type Call } from './programs.js';

type CiState = DaemonSchema<'CiState'>;
type CiCheck = DaemonSchema<'CiCheck'>;

export interface CiReport {
  ci: DaemonSchema<'CiStanding'>;
  checks: CiCheck[];
  error: string | null;
}

const unknownCi = { state: null, workflow: null, url: null };

export function unknown(error: string | null): CiReport {
  return { ci: unknownCi, checks: [], error };
}

const maxRuns = 100;
const fields = 'name,workflowName,status,conclusion,url';

/** CI state of a commit over all its runs. */
export async function readCi(call: Call, cwd: string, commit: string): Promise<CiReport> {
  const args = ['run', 'list', '--commit', commit, '--limit', String(maxRuns), '--json', fields];
  const end = await call('gh', args, cwd);
  if (end.kind === 'failed' || end.code !== 0) return unknown(complaint('gh', end));
  const runs = parseRuns(end.stdout);
  if (!runs) return unknown('gh answered with no list of runs');
  const checks = runs.map((run) => checkOf(run));
  return { ci: verdictOf(checks), checks, error: null };
}

type Run = Partial<Record<'name' | 'workflowName' | 'status' | 'conclusion' | 'url', unknown>>;

function parseRuns(text: string): Run[] | undefined {
  const value = jsonIn(text);
  const isList = Array.isArray(value) && value.every((each) => each && typeof each === 'object');
  return isList ? (value as Run[]) : undefined;
}

function checkOf({ name, workflowName, status, conclusion, url }: Run): CiCheck {
  return {
    name: textOf(workflowName) ?? textOf(name) ?? 'run',
    state: stateOf(lower(status), lower(conclusion)),
    url: typeof url === 'string' && URL.canParse(url) ? url : null,
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
}

function lower(value: unknown): string {
  return typeof value === 'string' ? value.toLowerCase() : '';
}

const byConclusion: Readonly<Record<string, CiState>> = {
  success: 'success',
  neutral: 'success',
  skipped: 'success',
  failure: 'failure',
  timed_out: 'failure',
  startup_failure: 'failure',
  // Waits for manual approval.
  action_required: 'pending',
  // The outcome is unknown.
  cancelled: 'none',
  stale: 'none',
};

function stateOf(status: string, conclusion: string): CiState {
  if (status !== 'completed' && status !== '') return 'pending';
  return byConclusion[conclusion] ?? null;
}

const worstFirst: readonly CiState[] = ['failure', 'pending', null, 'success'];

/** The worst state of all runs, and the run that has it. */
function verdictOf(checks: readonly CiCheck[]): DaemonSchema<'CiStanding'> {
  for (const state of worstFirst) {
    const decisive = checks.find((check) => check.state === state);
    if (decisive) return { state, workflow: decisive.name, url: decisive.url };
  }
  return { state: 'none', workflow: null, url: null };
}
