import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { DaemonSchema } from '@millrace/contract/daemon';
import {
  editYaml,
  readTextFile,
  suggestion,
  type LoadedConfig,
  type YamlChange,
} from '@millrace/kit/config';
import { messageOf, systemCode, UsageError, type FieldError } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import { writePrivateFile } from '@millrace/kit/private-files';
import { Turns } from '../core/turns.js';
import { fail } from '../core/api.js';
import { configView, type ConfigViewParts } from './config-view.js';
import { daemonConfig, type DaemonSettings } from './config.js';

type Loaded = LoadedConfig<DaemonSettings>;
type View = DaemonSchema<'ConfigView'>;

interface Service {
  /** Names it in warnings. */
  name: string;
  group: keyof DaemonSettings;
  apply: () => Promise<void>;
}

export interface LiveSettingsParts extends Pick<ConfigViewParts, 'dataDir' | 'secretFile'> {
  loaded: Loaded;
  log: Log;
}

const settingOf = new Map(daemonConfig.settings.map((setting) => [setting.key, setting]));
const isLive = (key: string) => settingOf.get(key)?.notes.live === true;

/** The settings in force. Those that are `live` change while the daemon runs. */
export class LiveSettings {
  readonly #services: Service[] = [];
  /** Warnings by the name of the service that does not have its settings. */
  readonly #failures = new Map<string, string>();
  /** Has the live settings in force; the others are as they were at start. */
  #applied: Loaded;
  /** Replaced at a change, never written to. */
  values: DaemonSettings;
  readonly #updates = new Turns();

  constructor(private readonly parts: LiveSettingsParts) {
    this.#applied = parts.loaded;
    this.values = parts.loaded.values;
  }

  /** Called after a change of the group, and again after a failure; one service at a time. */
  onChange(service: Service): void {
    this.#services.push(service);
  }

  view(): View {
    const { filePath } = this.parts.loaded;
    if (filePath === undefined) return this.#viewOf(this.#applied, this.#applied, null);
    let text: string;
    try {
      text = readTextFile(filePath) ?? '';
      return this.#viewOf(this.#applied, this.#loadText(text), revisionOf(text));
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      // The daemon runs on, but would not start again.
      const view = this.#viewOf(this.#applied, this.#applied, null);
      const warning = `The config file is invalid; fix it before a restart: ${error.message}`;
      return { ...view, warnings: [...view.warnings, warning] };
    }
  }

  /** Validates, writes the config file and applies it; one caller after the other. */
  update(request: DaemonSchema<'UpdateConfigRequest'>, by: string): Promise<View> {
    return this.#updates.in('', () => this.#update(request, by));
  }

  async #update(
    { values = {}, revision, validate_only }: DaemonSchema<'UpdateConfigRequest'>,
    by: string,
  ): Promise<View> {
    const { file, text: before } = this.#readFile();
    if (revision !== undefined && revision !== revisionOf(before)) {
      const detail = 'The config file changed since you read it. Read it again and repeat.';
      throw fail('CONFIG_CONFLICT', detail);
    }
    const changes = this.#changesOf(values);
    const text = changes.length === 0 ? before : this.#edit(before, changes);
    const next = this.#loadText(text);
    if (validate_only) return this.#viewOf(next, next, revisionOf(before));
    if (text !== before) write(file, text);
    const old = this.values;
    this.#applied = next;
    this.values = this.#merged(next);
    const keys = this.#differences(old, this.values);
    if (keys.length > 0) this.parts.log.info({ by, keys }, 'settings changed');
    for (const service of this.#services) {
      const { name, group } = service;
      const isSame = isDeepStrictEqual(old[group], this.values[group]);
      if (!isSame || this.#failures.has(name)) await this.#apply(service);
    }
    return this.view();
  }

  /** The file is written already, so a failure is a warning and the other services go on. */
  async #apply({ name, group, apply }: Service): Promise<void> {
    try {
      await apply();
      this.#failures.delete(name);
    } catch (error) {
      this.parts.log.error({ err: error, service: name }, 'failed to apply settings');
      const warning =
        `The ${group} settings are saved, but the ${name} failed to restart with them: ` +
        `${messageOf(error)}. Restart the daemon.`;
      this.#failures.set(name, warning);
    }
  }

  #readFile(): { file: string; text: string } {
    const { filePath: file } = this.parts.loaded;
    if (file === undefined) {
      throw fail('CONFIG_NOT_WRITABLE', 'The daemon was started without a config file.');
    }
    try {
      const text = readTextFile(file) ?? '';
      this.#loadText(text);
      return { file, text };
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      throw fail('CONFIG_NOT_WRITABLE', `Fix the config file first: ${error.message}`);
    }
  }

  #loadText(text: string): Loaded {
    const { loaded } = this.parts;
    // Without a file there is none to name as the source.
    if (text === '' && this.#applied.file === undefined) return this.#applied;
    return loaded.withFileText(text);
  }

  #changesOf(values: Readonly<Record<string, unknown>>): YamlChange[] {
    return Object.entries(values).map(([key, value]) => {
      const setting = settingOf.get(key);
      if (!setting) {
        const meant = suggestion(key, settingOf.keys()) || '.';
        const message = `There is no setting "${key}"${meant}`;
        throw fail('INVALID_REQUEST', message, { errors: [{ pointer: pointerTo(key), message }] });
      }
      const reason = this.#whyFixed(key);
      if (reason !== undefined) throw fail('SETTING_NOT_EDITABLE', reason);
      return { path: setting.path, value: value === null ? undefined : value };
    });
  }

  #whyFixed(key: string): string | undefined {
    if (!isLive(key)) {
      return `${key} applies at the next start of the daemon. Change it with: ctl config set`;
    }
    const source = this.parts.loaded.sourceOf(key);
    if (source.kind === 'flag') return `${key} is set by --${source.flag}, which wins.`;
    if (source.kind === 'environment') return `${key} is set by $${source.variable}, which wins.`;
    return undefined;
  }

  #edit(before: string, changes: readonly YamlChange[]): string {
    const errors: FieldError[] = [];
    for (const change of changes) {
      const message = this.#mistakeIn(before, [change]);
      if (message === undefined) continue;
      errors.push({ pointer: pointerTo(change.path.join('.')), message });
    }
    const message = errors.length > 0 ? errors[0]!.message : this.#mistakeIn(before, changes);
    if (message !== undefined) throw fail('INVALID_REQUEST', message, { errors });
    return editYaml(before, changes);
  }

  /** Why the text cannot be changed like this, without the place in the file. */
  #mistakeIn(before: string, changes: readonly YamlChange[]): string | undefined {
    try {
      this.parts.loaded.withFileText(editYaml(before, changes));
      return undefined;
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      const file = this.parts.loaded.file ?? this.parts.loaded.filePath!;
      return error.message
        .split('\n')
        .map((line) => withoutPlace(line, file))
        .join('\n');
    }
  }

  /** The values at start with the live ones of `next`. */
  #merged(next: Loaded): DaemonSettings {
    const values = structuredClone(this.parts.loaded.values);
    for (const { key, path } of daemonConfig.settings) {
      if (!isLive(key)) continue;
      let [from, to] = [next.values, values] as unknown as [Tree, Tree];
      for (const name of path.slice(0, -1)) [from, to] = [from[name] as Tree, to[name] as Tree];
      to[path.at(-1)!] = from[path.at(-1)!];
    }
    return values;
  }

  #differences(before: DaemonSettings, now: DaemonSettings): string[] {
    const valueIn = (values: DaemonSettings, path: readonly string[]) =>
      path.reduce<unknown>((tree, name) => (tree as Tree)[name], values);
    return daemonConfig.settings
      .filter(({ path }) => !isDeepStrictEqual(valueIn(before, path), valueIn(now, path)))
      .map(({ key }) => key);
  }

  /** `applied` has the live settings in force, `inFile` what the config file has now. */
  #viewOf(applied: Loaded, inFile: Loaded, revision: string | null): View {
    const { loaded, ...parts } = this.parts;
    const entryOf = new Map(applied.entries.map((entry) => [entry.key, entry]));
    const inForce = {
      file: applied.file && resolve(loaded.filePath ?? applied.file),
      entries: loaded.entries.map((entry) => (isLive(entry.key) ? entryOf.get(entry.key)! : entry)),
      sourceOf: (key: string) => (isLive(key) ? applied : loaded).sourceOf(key),
      warnings: [...applied.warnings, ...this.#failures.values()],
    };
    const fileValues = new Map(inFile.entries.map(({ key, value }) => [key, value]));
    const isPending = (key: string, value: unknown) =>
      !isDeepStrictEqual(fileValues.get(key), value);
    const isEditable = (key: string) => revision !== null && this.#whyFixed(key) === undefined;
    return { ...configView({ ...parts, loaded: inForce, isPending, isEditable }), revision };
  }
}

type Tree = Record<string, unknown>;

function write(file: string, text: string): void {
  try {
    writePrivateFile(targetOf(file), text);
  } catch (error) {
    const reason = systemCode(error);
    if (reason === '') throw error;
    const detail = `The config file ${file} cannot be written: ${messageOf(error)}`;
    throw fail('CONFIG_NOT_WRITABLE', detail, { cause: error });
  }
}

/** Writes through a symbolic link instead of replacing it. */
function targetOf(file: string): string {
  try {
    return realpathSync(file);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return file;
    throw error;
  }
}

function revisionOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

function pointerTo(key: string): string {
  return `/values/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

function withoutPlace(line: string, file: string): string {
  return line.startsWith(`${file}:`) ? line.slice(file.length).replace(/^:\d+: /, '') : line;
}
