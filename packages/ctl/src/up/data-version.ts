import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ifThere, Refusal } from '@millrace/kit/errors';
import { writePrivateFile } from '@millrace/kit/private-files';

/** The version of Millrace that last ran on a data directory. */
const versionFile = (dataDir: string) => join(dataDir, 'VERSION');

/** Version 0.1.0 left no file; its data directories have this one. */
const firstVersion = '0.1.0';
const traceOfFirst = 'queue-tokens.yaml';

/**
 * Refuses data of a newer version, whose files this one may not understand, and with `noUpgrade`
 * data of an older one. Data of another patch release of the same minor version is accepted.
 */
export function checkDataVersion(dataDir: string, own: string, noUpgrade: boolean): void {
  const stored = storedVersion(dataDir);
  if (stored === undefined) return;
  const order = compare(stored, own);
  if (order > 0) {
    throw new Refusal(
      'DATA_TOO_NEW',
      `The data in ${dataDir} was written by Millrace ${stored}; this is ${own}. Install ` +
        `${stored} or later: npm install -g millrace@${stored}`,
    );
  }
  if (order < 0 && noUpgrade) {
    throw new Refusal(
      'UPGRADE_NEEDED',
      `The data in ${dataDir} was written by Millrace ${stored}, and this is ${own}. Back it ` +
        'up, then start without --no-upgrade.',
    );
  }
}

/** Records that this version has opened the data. */
export function stampDataVersion(dataDir: string, own: string): void {
  if (readLine(versionFile(dataDir)) !== own) writePrivateFile(versionFile(dataDir), `${own}\n`);
}

function storedVersion(dataDir: string): string | undefined {
  const stamped = readLine(versionFile(dataDir));
  if (stamped === undefined) {
    return readLine(join(dataDir, traceOfFirst)) === undefined ? undefined : firstVersion;
  }
  if (/^\d+\.\d+\.\d+/.test(stamped)) return stamped;
  throw new Refusal('DATA_DAMAGED', `${versionFile(dataDir)} contains no version.`);
}

function readLine(file: string): string | undefined {
  return ifThere(() => readFileSync(file, 'utf8'))?.trim();
}

/** Compares major and minor versions. */
function compare(a: string, b: string): number {
  const [one, other] = [a, b].map((text) => text.split('.').map((part) => Number.parseInt(part)));
  return (one?.[0] ?? 0) - (other?.[0] ?? 0) || (one?.[1] ?? 0) - (other?.[1] ?? 0);
}
