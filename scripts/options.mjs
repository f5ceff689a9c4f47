/** The command lines of `npm run` scripts: one way to read options, to show help and to refuse. */
import { parseArgs } from 'node:util';
import { say } from './prepare.mjs';

/**
 * Values and positionals of `npm run NAME`. `options` are those of parseArgs, each with its text
 * in `help`. `--help` prints them and ends with 0, a wrong option ends with 2.
 */
export function readOptions({ name, use = '[options]', about, options, allowPositionals = false }) {
  const all = { ...options, help: { type: 'boolean', short: 'h', help: 'Show this' } };
  let read;
  try {
    read = parseArgs({ options: all, allowPositionals });
  } catch (error) {
    refuse(name, error.message);
  }
  if (!read.values.help) return read;
  console.log(`usage: npm run ${name} -- ${use}\n\n${about}\n\n${optionsText(all)}`);
  process.exit(0);
}

export function refuse(name, problem) {
  say(`${problem}\nSee: npm run ${name} -- --help`);
  process.exit(2);
}

export function optionsText(options) {
  const lines = Object.entries(options).map(([option, { type, default: value, help }]) => [
    `--${option}${type === 'string' ? ' VALUE' : ''}`,
    typeof value === 'string' ? `${help} (default: ${value || 'none'})` : help,
  ]);
  const width = Math.max(...lines.map(([term]) => term.length));
  return lines.map(([term, text]) => `  ${term.padEnd(width)}  ${text}`).join('\n');
}
