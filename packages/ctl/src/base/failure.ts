import { inspect } from 'node:util';
import { Mistake } from './command.js';
import { asTyped, programName } from './command-name.js';
import { fileErrorCode, fileErrorText } from './file-error.js';
import type { Terminal } from './terminal.js';

interface Failure {
  readonly code: string;
  readonly message: string;
  /** A second line, not shown as JSON. */
  readonly hint?: string;
  readonly exitCode: 1 | 2;
}

/** Prints an error as text or, with `--json`, as JSON; returns the exit code. */
export async function reportFailure(error: unknown, terminal: Terminal): Promise<number> {
  const failure = await classify(error);
  const message = asTyped(inOneLine(failure.message));
  const { err, format, debug } = terminal;
  if (format === 'json') {
    const stack = debug ? { stack: inspect(error) } : {};
    err.write(`${JSON.stringify({ error: { code: failure.code, message, ...stack } })}\n`);
    return failure.exitCode;
  }
  err.write(`${err.paint('bad', `${programName()}:`)} ${message}\n`);
  if (debug) err.write(`${inspect(error)}\n`);
  else if (failure.hint !== undefined) err.write(`${asTyped(failure.hint)}\n`);
  return failure.exitCode;
}

/** Errors of a file are a line each. An indented line goes on with the one before. */
function inOneLine(message: string): string {
  const join = (_: string, end: string, indent: string) =>
    indent !== '' || /[.:;,]/.test(end) ? `${end} ` : `${end}; `;
  return message.trim().replaceAll(/(\S)\s*\n([^\S\n]*)/g, join);
}

async function classify(error: unknown): Promise<Failure> {
  if (error instanceof Mistake) {
    const hint = `Run '${error.path} --help' for usage.`;
    return { code: 'USAGE', message: error.message, hint, exitCode: 2 };
  }
  const { Refusal, UsageError, messageOf, systemCode } = await import('@millrace/kit/errors');
  if (error instanceof UsageError) {
    return { code: 'USAGE', message: error.message, exitCode: 2 };
  }
  if (error instanceof Refusal) return { code: error.code, message: error.detail, exitCode: 1 };
  const code = systemCode(error);
  // ENOENT, ECONNREFUSED and the like come from the system; ERR_... is a mistake in our use of
  // Node.
  if (/^E[A-Z0-9]+$/.test(code)) {
    const message = fileErrorText(error);
    if (message === undefined) return { code, message: messageOf(error), exitCode: 1 };
    return { code: fileErrorCode(error), message, exitCode: 1 };
  }
  return {
    code: 'INTERNAL',
    message: `internal error: ${messageOf(error)}`,
    hint: 'This is a bug. Run it again with MILLRACE_DEBUG=1 for a stack trace.',
    exitCode: 1,
  };
}
