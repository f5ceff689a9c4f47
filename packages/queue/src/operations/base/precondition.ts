import { fail } from './refusal.js';

/** A condition on the current config for replacing it. */
export type Precondition = 'none' | 'exists' | { versions: ReadonlySet<number> };

const listed = /^\s*(?:W\/)?"[\x21\x23-\x7e]*"\s*$/;
const ours = /^\s*"(0|[1-9][0-9]{0,15})"\s*$/;
const bareVersion = /^\s*([1-9][0-9]{0,15})\s*$/;

/**
 * Parses `If-Match` (RFC 9110, section 13.1.1). A version without quotes is accepted as its tag.
 * An invalid list of tags matches nothing.
 */
export function readPrecondition(ifMatch: string | undefined): Precondition {
  if (ifMatch === undefined) return 'none';
  if (ifMatch.trim() === '*') return 'exists';
  const bare = bareVersion.exec(ifMatch)?.[1];
  const tags = bare === undefined ? ifMatch.split(',') : [`"${bare}"`];
  const versions = tags.every((tag) => listed.test(tag))
    ? tags.flatMap((tag) => Number(ours.exec(tag)?.[1] ?? Number.NaN))
    : [];
  return { versions: new Set(versions) };
}

export function requirePrecondition(
  precondition: Precondition,
  current: { version: number } | undefined,
): void {
  if (precondition === 'none') return;
  if (!current) {
    throw fail(
      'PRECONDITION_FAILED',
      'The queue does not exist yet; leave out If-Match to create it.',
    );
  }
  if (precondition === 'exists' || precondition.versions.has(current.version)) return;
  throw fail(
    'PRECONDITION_FAILED',
    `The config has version ${current.version} now; read it again and send its ETag.`,
  );
}
