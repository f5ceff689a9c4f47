import type { DaemonSchema } from '@millrace/contract/daemon';
import { workOf, type Session } from './session.js';

type CoEditedFiles = DaemonSchema<'CoEditedFiles'>;
type ParallelCandidate = DaemonSchema<'ParallelCandidate'>;

const maxShown = 100;
/** Sessions that edit more files than this say nothing about which files belong together. */
const maxPairedFiles = 40;
/** Sessions with a longer pause between them are considered unrelated. */
const maxPauseMs = 4 * 3_600_000;

/** Pairs of files edited together by at least two sessions, the most frequent first. */
export function coEditedFiles(sessions: readonly Session[]): CoEditedFiles[] {
  const edits = new Map<string, number>();
  const pairs = new Map<string, { repo: string; files: [string, string]; sessions: number }>();
  const nameOf = (...parts: readonly string[]) => parts.join('\0');
  for (const { repo, files } of sessions) {
    for (const file of files)
      edits.set(nameOf(repo, file), (edits.get(nameOf(repo, file)) ?? 0) + 1);
    if (files.length > maxPairedFiles) continue;
    for (const [at, first] of files.entries()) {
      for (const second of files.slice(at + 1)) {
        const name = nameOf(repo, first, second);
        const pair = pairs.get(name);
        if (pair) pair.sessions += 1;
        else pairs.set(name, { repo, files: [first, second], sessions: 1 });
      }
    }
  }
  return [...pairs.values()]
    .filter((pair) => pair.sessions >= 2)
    .map((pair) => {
      const [first, second] = pair.files.map((file) => edits.get(nameOf(pair.repo, file))!);
      return { ...pair, share: pair.sessions / (first! + second! - pair.sessions) };
    })
    .sort(
      (a, b) =>
        b.sessions - a.sessions ||
        b.share - a.share ||
        (nameOf(a.repo, ...a.files) < nameOf(b.repo, ...b.files) ? -1 : 1),
    )
    .slice(0, maxShown);
}

/** Consecutive sessions in one repository that edited no common file. */
export function parallelCandidates(ended: readonly Session[]): ParallelCandidate[] {
  const last = new Map<string, Session>();
  const candidates: ParallelCandidate[] = [];
  for (const second of ended) {
    const first = last.get(second.repo);
    last.set(second.repo, second);
    if (!first || second.firstAt < first.lastAt) continue;
    if (second.firstAt - first.lastAt > maxPauseMs) continue;
    // Without known edits there is no evidence that the sessions are independent.
    if (first.files.length === 0 || second.files.length === 0) continue;
    const firstFiles = new Set(first.files);
    const saved = Math.min(workOf(first), workOf(second));
    if (saved === 0 || second.files.some((file) => firstFiles.has(file))) continue;
    candidates.push({
      repo: second.repo,
      first_id: first.id,
      first_name: first.name ?? first.id,
      second_id: second.id,
      second_name: second.name ?? second.id,
      saved_ms: saved,
      reason: 'they have no edited file in common',
    });
  }
  return candidates
    .sort((a, b) => b.saved_ms - a.saved_ms || (a.first_id < b.first_id ? -1 : 1))
    .slice(0, maxShown);
}
