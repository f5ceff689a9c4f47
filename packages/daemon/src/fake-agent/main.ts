import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { converse } from './conversation.js';
import { printRun } from './print-run.js';
import { optionsOf } from './script.js';
import { Transcript, transcriptFile } from './transcript.js';

const options = optionsOf(process.argv.slice(2));
const cwd = process.cwd();
const sessionId = options.resume ?? options.sessionId ?? randomUUID();
const place = { sessionId, cwd, environment: process.env };

if (options.resume !== undefined && !existsSync(transcriptFile(place))) {
  process.stderr.write(`No conversation found with session ID: ${options.resume}\n`);
  process.exit(1);
}
const transcript = new Transcript({ ...place, model: options.model, now: () => new Date() });
const isConversation = !options.isPrint && process.stdin.isTTY && process.stdout.isTTY;
process.exitCode = isConversation
  ? await converse({ transcript, cwd, prompt: options.prompt })
  : await printRun({ transcript, cwd, options, sessionId });
// Pending reads of input must not keep a finished agent alive.
process.exit();
