import type { RemoteDatabase } from '@millrace/db/client';
import { Refusal } from '@millrace/kit/errors';
import type { CtlCommand } from '../../base/command.js';
import { tokenize } from '../../base/tokens.js';

const sampleRecords = 50;
const ownFields = ['$id', '$key', '$rev', '$created_at', '$updated_at'];

/** Completes commands, then collections, then fields and flags. */
export class Completer {
  readonly #fields = new Map<string, Promise<string[]>>();
  #collections: Promise<string[]> | undefined;

  constructor(
    private readonly database: RemoteDatabase,
    private readonly commands: CtlCommand,
    private readonly extras: readonly string[],
  ) {}

  /** The form that readline expects: the candidates, and the part of the line they replace. */
  async complete(line: string): Promise<[matches: string[], part: string]> {
    const words = [...tokenize(line).words];
    const part = /\s$/.test(line) || words.length === 0 ? '' : words.pop()!;
    const candidates = await this.#candidates(words, part);
    return [candidates.filter((candidate) => candidate.startsWith(part)), part];
  }

  /** Drops the cache, since collections and fields may have changed. */
  forget(): void {
    this.#collections = undefined;
    this.#fields.clear();
  }

  async #candidates(words: readonly string[], part: string): Promise<string[]> {
    const [name, collection] = words;
    if (name === undefined || name === 'help') return this.#commandNames(name === 'help');
    const command = this.commands.subcommand(name);
    if (!command) return [];
    if (part.startsWith('-')) return this.#flags(command);
    if (!command.registeredArguments.some((argument) => argument.name() === 'collection'))
      return [];
    if (collection === undefined) return (this.#collections ??= this.#readCollections());
    return takesFields(command, words) ? this.#fieldsOf(collection) : [];
  }

  #commandNames(isHelp: boolean): string[] {
    const names = this.commands.subcommands.map((command) => command.name());
    return (isHelp ? names : [...names, ...this.extras]).map((name) => `${name} `);
  }

  #flags(command: CtlCommand): string[] {
    return command
      .createHelp()
      .visibleOptions(command)
      .flatMap(({ long }) => (long ? [`${long} `] : []));
  }

  async #readCollections(): Promise<string[]> {
    const status = await orNothing(this.database.status({ includeCollections: true }));
    return (status?.collections ?? []).map(({ name }) => `${name} `);
  }

  #fieldsOf(collection: string): Promise<string[]> {
    const known = this.#fields.get(collection);
    if (known) return known;
    const reading = this.#readFields(collection);
    this.#fields.set(collection, reading);
    return reading;
  }

  async #readFields(collection: string): Promise<string[]> {
    const query = { limit: sampleRecords };
    const page = await orNothing(this.database.collection(collection).find(query));
    const names = (page?.records ?? []).flatMap(({ data }) => Object.keys(data));
    return [...new Set(names), ...ownFields];
  }
}

function takesFields(command: CtlCommand, words: readonly string[]): boolean {
  const last = words.at(-1) ?? '';
  if (['--order-by', '--fields', '--group-by'].includes(last)) return true;
  return command.registeredArguments.some((argument) => argument.name() === 'conditions');
}

/** Without read access there is nothing to complete; running the line reports why. */
async function orNothing<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}
