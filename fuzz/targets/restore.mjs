import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeFrame } from '../../packages/engine/dist/maintain/backup/frames.js';
import { checkBackup } from '../../packages/engine/dist/maintain/backup/check.js';
import { restore } from '../../packages/engine/dist/maintain/backup/restore.js';
import { Refusal, UsageError } from '../../packages/kit/dist/base/errors.js';

/*
 * Backup files. An input with an odd first byte gets right checksums, so that what is behind them is
 * reached: a file of somebody who can compute them.
 */

const directory = mkdtempSync(join(tmpdir(), 'mr-fuzz-'));
const file = join(directory, 'backup');
const magicLength = 16;
const headLength = 13;

export const isExpected = (error) => error instanceof Refusal || error instanceof UsageError;
export const end = () => rmSync(directory, { recursive: true, force: true });

export async function run(input) {
  const bytes = input.subarray(1);
  writeFileSync(file, (input[0] ?? 0) & 1 ? withChecksums(bytes) : bytes);
  await checkBackup(file);
  const target = join(directory, 'restored');
  try {
    await restore([file], target);
  } finally {
    rmSync(target, { recursive: true, force: true });
  }
}

function withChecksums(bytes) {
  const parts = [bytes.subarray(0, magicLength)];
  for (let at = magicLength; at + headLength <= bytes.length;) {
    const length = Math.min(bytes.readUInt32BE(at), bytes.length - at - headLength);
    const payload = bytes.subarray(at + headLength, at + headLength + length);
    parts.push(encodeFrame(bytes[at + 4], payload));
    at += headLength + length;
  }
  return Buffer.concat(parts);
}
