import type { Log } from '@millrace/kit/log';
import type { Clock } from '@millrace/kit/clock';
import { jsonIn, membersIn, Refusal } from '@millrace/kit/errors';
import { readCi } from '../branches/ci.js';
import { complaint, programCalls, type Call } from '../branches/programs.js';
import type { GitParts } from '../git/run-git.js';
import { git } from '../git/run-git.js';
import type { Session } from '../sessions/port.js';
import type { Workbench } from '../workbench/workbench.js';

export interface FeedbackParts {
  workbench: Workbench;
  git: GitParts;
  clock: Clock;
  log: Log;
  /** `agents.feedback_interval`, in milliseconds. */
  intervalMs: () => number;
}

export type FeedbackSource = 'ci' | 'pr';

/** Texts for the session, or that there is nothing left to wait for. */
export interface FeedbackEnd {
  texts: string[];
  /** Reports that the session has got by now. */
  seen: string[];
  /** CI has failed on the branch as it is. */
  isRed: boolean;
}

/** After this many failures of gh in a row the task goes on without feedback. */
const maxFailures = 5;
/** Failures of gh that waiting does not end. */
const lasting = /gh is not installed|no git remotes|gh auth login/;
/** CI starts some time after a push: without any run it is read this often. */
const maxReadsWithoutRuns = 3;
const maxBackoff = 16;

/** Pushes the branch and opens its pull request, where there is a remote. Failures are logged. */
export async function publish(
  { workbench, log, git: parts }: FeedbackParts,
  session: Session,
  title: string,
): Promise<void> {
  const remotes = await git(parts, session.workdir, 'remote');
  if (!remotes.isOk || remotes.stdout === '') return;
  try {
    await workbench.openPr(session, { title: title.slice(0, 200) });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    log.warn({ session: session.id, reason: error.detail }, 'failed to open pull request');
  }
}

/**
 * Polls CI and the pull request of a branch until one reports something new, or until nothing more
 * is to come: the checks passed, and the pull request is approved, closed or not there. Without gh
 * it goes on as if there were no feedback.
 */
export async function awaitFeedback(
  parts: FeedbackParts,
  session: Session,
  {
    from,
    seen,
    signal,
  }: { from: readonly FeedbackSource[]; seen: readonly string[]; signal: AbortSignal },
): Promise<FeedbackEnd> {
  const { clock, log, intervalMs } = parts;
  const call = programCalls({ clock, environment: parts.git.environment, signal });
  let [failures, quiet, withoutRuns] = [0, 0, 0];
  for (;;) {
    const report = await readReport(parts, call, session, from);
    signal.throwIfAborted();
    if ('trouble' in report) {
      log.warn({ session: session.id, reason: report.trouble }, 'failed to read feedback');
      if (++failures >= maxFailures || lasting.test(report.trouble)) {
        return { texts: [], seen: [...seen], isRed: false };
      }
    } else {
      failures = 0;
      const fresh = report.notes.filter(({ id }) => !seen.includes(id));
      const ids = [...seen, ...fresh.map(({ id }) => id)];
      const { isRed } = report;
      if (fresh.length > 0) return { texts: fresh.map(({ text }) => text), seen: ids, isRed };
      const mayStart = report.hasNoRuns && ++withoutRuns < maxReadsWithoutRuns;
      if (!report.isOpen && !mayStart) return { texts: [], seen: ids, isRed };
    }
    const factor = Math.min(maxBackoff, 2 ** Math.max(failures, quiet++ >> 2));
    await clock.sleep(intervalMs() * factor, signal);
  }
}

interface Report {
  notes: { id: string; text: string }[];
  /** More may come. */
  isOpen: boolean;
  isRed: boolean;
  /** CI has not started on the branch as it is. */
  hasNoRuns: boolean;
}

async function readReport(
  parts: FeedbackParts,
  call: Call,
  session: Session,
  from: readonly FeedbackSource[],
): Promise<Report | { trouble: string }> {
  const reports: Report[] = [];
  for (const source of from) {
    const report =
      source === 'ci'
        ? await readChecks(parts, call, session)
        : await readPullRequest(call, session);
    if ('trouble' in report) return report;
    reports.push(report);
  }
  return {
    notes: reports.flatMap(({ notes }) => notes),
    isOpen: reports.some(({ isOpen }) => isOpen),
    isRed: reports.some(({ isRed }) => isRed),
    hasNoRuns: reports.some(({ hasNoRuns }) => hasNoRuns),
  };
}

async function readChecks(
  { git: parts }: FeedbackParts,
  call: Call,
  { workdir }: Session,
): Promise<Report | { trouble: string }> {
  const head = await git(parts, workdir, 'rev-parse', 'HEAD');
  if (!head.isOk) return { trouble: head.trouble };
  const { ci, checks, error } = await readCi(call, workdir, head.stdout);
  if (error !== null) return { trouble: error };
  const notes = checks
    .filter(({ state }) => state === 'failure')
    .map(({ name, url }) => ({
      id: `ci:${head.stdout}:${name}:${url ?? ''}`,
      text: `The check "${name}" of ${head.stdout.slice(0, 12)} failed.${url ? ` See ${url}` : ''}`,
    }));
  const isOpen = ci.state === 'pending' || ci.state === null;
  return { notes, isOpen, isRed: ci.state === 'failure', hasNoRuns: checks.length === 0 };
}

interface PullRequest {
  number?: number;
  state?: string;
  reviewDecision?: string;
  comments?: Remark[];
  reviews?: Remark[];
}

interface Remark {
  id?: string | number;
  author?: { login?: string };
  /** The author of a comment on a line. */
  user?: { login?: string };
  path?: string;
  line?: number | null;
  body?: string;
  state?: string;
}

const prFields = 'number,state,reviewDecision,comments,reviews';
const noPullRequest = { notes: [], isOpen: false, isRed: false, hasNoRuns: false };

async function readPullRequest(
  call: Call,
  session: Session,
): Promise<Report | { trouble: string }> {
  const { branch, workdir } = session;
  const end = await call('gh', ['pr', 'view', branch ?? '', '--json', prFields], workdir);
  if (end.kind === 'failed') return { trouble: end.why };
  if (end.code !== 0) {
    if (/no pull requests? found/i.test(end.stderr)) return noPullRequest;
    return { trouble: complaint('gh', end) };
  }
  const found = membersIn(end.stdout) as PullRequest | undefined;
  if (!found) return { trouble: 'gh answered with no pull request' };
  const { number, comments = [], reviews = [] } = found;
  const onLines = number === undefined ? [] : await readLineComments(call, workdir, number);
  if ('trouble' in onLines) return onLines;
  const notes = [...comments, ...reviews, ...onLines]
    .filter(({ body = '', state }) => body.trim() !== '' && state !== 'APPROVED')
    .map((remark) => ({ id: `pr:${remark.id ?? remark.body}`, text: textOf(remark) }));
  const isApproved = found.reviewDecision === 'APPROVED';
  const isOpen = (found.state ?? 'OPEN') === 'OPEN' && !isApproved;
  return { notes, isOpen, isRed: false, hasNoRuns: false };
}

/** `gh pr view` has the text of a review, without its comments on lines. */
async function readLineComments(
  call: Call,
  workdir: string,
  number: number,
): Promise<Remark[] | { trouble: string }> {
  const newest = 'sort=created&direction=desc&per_page=100';
  const path = `repos/{owner}/{repo}/pulls/${number}/comments?${newest}`;
  const end = await call('gh', ['api', path], workdir);
  if (end.kind === 'failed' || end.code !== 0) return { trouble: complaint('gh', end) };
  const list = jsonIn(end.stdout);
  if (!Array.isArray(list)) return { trouble: 'gh answered with no list of comments' };
  return (list as Remark[]).toReversed();
}

function textOf({ author, user, path, line, body = '' }: Remark): string {
  const who = (author ?? user)?.login ?? 'Somebody';
  const where = path === undefined ? 'the pull request' : line ? `${path}, line ${line}` : path;
  return `${who} commented on ${where}:\n${body}`;
}
