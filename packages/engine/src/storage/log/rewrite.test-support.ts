import { closeSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { frameHeadLength, readHead, sealFrame, segmentHeaderLength } from './segment.js';

/**
 * Changes an encoded commit in the files of a closed log. `isResealed`: the frame gets a checksum
 * that fits, as if it had been written like that.
 */
export function rewriteCommit(
  directory: string,
  seq: number,
  change: (commit: Buffer) => void,
  { isResealed = true } = {},
): void {
  const logs = readdirSync(directory).filter((name) => name.startsWith('log-'));
  for (const name of readdirSync(join(directory, logs[0]!)).toSorted().toReversed()) {
    const path = join(directory, logs[0]!, name);
    const found = findCommit(path, seq);
    if (!found) continue;
    change(found.commit);
    if (isResealed) sealFrame(found.frame, found.salt);
    const file = openSync(path, 'r+');
    writeSync(file, found.frame, 0, found.frame.length, found.at);
    closeSync(file);
    return;
  }
  throw new Error(`The log has no commit ${seq}`);
}

function findCommit(path: string, seq: number) {
  const bytes = readFileSync(path);
  const salt = bytes.readUInt32BE(26);
  for (let at = segmentHeaderLength; ;) {
    const head = readHead(bytes, at);
    if (!head) return undefined;
    const frame = bytes.subarray(at, at + head.length);
    let commitAt = frameHeadLength;
    for (let i = 0; i < head.commits; i++) {
      const length = frame.readUInt32BE(commitAt);
      const commit = frame.subarray(commitAt + 4, commitAt + 4 + length);
      if (head.firstSeq + i === seq) return { frame, commit, salt, at };
      commitAt += 4 + length;
    }
    at += head.length;
  }
}
