import { isUtf8 } from 'node:buffer';
import { parseYamlText } from '@millrace/kit/config';
import { UsageError } from '@millrace/kit/errors';
import { z } from 'zod';

const complaint = /^body(?::(\d+):(\d+))?: not valid YAML: ([^\n]*)/;

/** Parses a YAML body. Errors name line and column. */
export function parseYamlBody(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new Error('the bytes are not UTF-8');
  try {
    return parseYamlText('body', bytes.toString('utf8'), z.unknown()).value;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const [, line, column, what = error.message] = complaint.exec(error.message) ?? [];
    const place = line === undefined ? '' : ` at line ${line}, column ${column}`;
    throw new Error(`${what}${place}`, { cause: error });
  }
}
