/**
 * What each version of a command-line agent writes and offers: record types and fields of its
 * transcripts and of its JSON output, the flags of its help, and the marks of its screen that the
 * daemon knows. `shapes.json` has them by version, so that a new version can be compared by name.
 */
import { existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { headless } from './steps.mjs';

const file = join(dirname(fileURLToPath(import.meta.url)), 'shapes.json');

/** Where transcripts are, below the home directory. opencode has a database. */
const places = {
  claude: '.claude/projects',
  codex: '.codex/sessions',
  gemini: '.gemini/tmp',
  qwen: '.qwen/projects',
};

/** The commands whose help lists flags that the daemon uses. */
const helps = { codex: [[], ['exec']], opencode: [[], ['run']] };

const byText = (a, b) => (a < b ? -1 : Number(a > b));
const fields = (record, ...names) => names.map((name) => `${record}: field ${name}`);
const flags = (...names) => names.map((name) => `flag --${name}`);

/** What the daemon reads and uses of each CLI, as `differences` names it. */
export const reads = {
  claude: [
    ...fields('transcript: assistant', 'timestamp', 'sessionId', 'cwd'),
    ...fields('transcript: assistant', 'message.id', 'message.model', 'message.stop_reason'),
    ...fields('transcript: assistant', 'message.usage.input_tokens', 'message.usage.output_tokens'),
    ...fields('transcript: assistant', 'message.usage.cache_read_input_tokens'),
    ...fields('transcript: assistant', 'message.usage.cache_creation_input_tokens'),
    ...fields('output: system/init', 'session_id', 'model'),
    ...fields('output: assistant', 'message.usage.input_tokens', 'message.content[].type'),
    ...fields('output: result/success', 'is_error', 'result', 'modelUsage', 'permission_denials'),
    ...flags('print', 'output-format', 'verbose', 'permission-mode', 'resume', 'session-id'),
    ...flags('model', 'mcp-config'),
    'screen: mark working: its screen shows a turn under way',
  ],
  codex: [
    ...fields('transcript: session_meta', 'payload.id', 'payload.cwd', 'payload.timestamp'),
    ...fields('transcript: turn_context', 'payload.model', 'payload.cwd'),
    ...['input_tokens', 'output_tokens', 'cached_input_tokens'].flatMap((name) =>
      fields('transcript: event_msg/token_count', `payload.info.total_token_usage.${name}`),
    ),
    'transcript: record event_msg/task_started',
    'transcript: record event_msg/task_complete',
    ...fields('output: thread.started', 'thread_id'),
    ...fields('output: turn.completed', 'usage.input_tokens'),
    ...fields('output: item.completed/agent_message', 'item.text'),
    ...flags('json', 'skip-git-repo-check', 'sandbox', 'config', 'model'),
    'screen: mark working: its screen shows a turn under way',
  ],
  gemini: [
    ...fields('transcript: gemini', 'id', 'timestamp', 'model', 'content', 'tokens.input'),
    ...fields('transcript: gemini', 'tokens.output', 'tokens.cached', 'tokens.thoughts'),
    ...fields('transcript: main', 'sessionId'),
    ...flags('approval-mode', 'prompt-interactive', 'model', 'session-id', 'skip-trust', 'acp'),
    'screen: mark working: its screen shows a turn under way',
  ],
  qwen: [
    ...fields('transcript: system/ui_telemetry', 'sessionId', 'cwd', 'timestamp'),
    ...['event.name', 'model', 'input_token_count', 'output_token_count'].flatMap((name) =>
      fields('transcript: system/ui_telemetry', `systemPayload.uiEvent.${name}`),
    ),
    ...fields('transcript: assistant', 'message.parts[].text'),
    ...flags('approval-mode', 'prompt-interactive', 'model', 'resume', 'session-id', 'acp'),
    'screen: mark working: its screen shows a turn under way',
  ],
  opencode: [
    ...fields('output: text/text', 'sessionID', 'part.text'),
    ...fields('output: step_finish/step-finish', 'part.tokens.input', 'part.tokens.cache.read'),
    ...flags('format', 'session', 'model'),
    'screen: mark working: its screen shows a turn under way',
  ],
};

/** Below these names are values of tools and models, not fields of the format. */
const free = new Set(['input', 'arguments', 'args', 'tool_input', 'toolUseResult', 'modelUsage']);
const maxDepth = 6;

/** Types of a record, from the outside in: `event_msg/token_count`. */
function nameOf(record) {
  const names = [record, record.payload, record.item, record.part].flatMap((each) =>
    [each?.type, each?.subtype].filter((name) => typeof name === 'string'),
  );
  return names.join('/') || record.kind || 'record';
}

function fieldsOf(value, path = '', depth = 0) {
  if (typeof value !== 'object' || value === null || depth >= maxDepth) return [];
  if (Array.isArray(value)) {
    return value.flatMap((each) => fieldsOf(each, `${path}[]`, depth + 1));
  }
  return Object.entries(value).flatMap(([name, inner]) => {
    // Names of files and ids are values.
    const key = /^[\w.$-]{1,40}$/.test(name) && !/\d{4}/.test(name) ? name : '*';
    const own = path === '' ? key : `${path}.${key}`;
    return [own, ...(free.has(name) ? [] : fieldsOf(inner, own, depth + 1))];
  });
}

/** The fields of each record type. */
export function shapesOf(records) {
  const shapes = new Map();
  for (const record of records) {
    const name = nameOf(record);
    const fields = shapes.get(name) ?? new Set();
    for (const field of fieldsOf(record)) fields.add(field);
    shapes.set(name, fields);
  }
  return Object.fromEntries(
    [...shapes]
      .toSorted(([a], [b]) => byText(a, b))
      .map(([name, set]) => [name, [...set].sort(byText)]),
  );
}

/** The flags that a help text lists. */
export function flagsIn(text) {
  return [...new Set(text.match(/(?<![\w-])--[a-z][\w-]*/g) ?? [])].sort(byText);
}

/** What appeared and vanished from one version to another, one sentence each. */
export function differences(before, after) {
  const lines = [];
  const compare = (what, old = [], now = []) => {
    for (const each of now) if (!old.includes(each)) lines.push(`${what} ${each} appeared`);
    for (const each of old) if (!now.includes(each)) lines.push(`${what} ${each} vanished`);
  };
  for (const part of ['transcript', 'output']) {
    const [old, now] = [before[part] ?? {}, after[part] ?? {}];
    compare(`${part}: record`, Object.keys(old), Object.keys(now));
    for (const name of Object.keys(old)) {
      if (now[name]) compare(`${part}: ${name}: field`, old[name], now[name]);
    }
  }
  compare('flag', before.flags, after.flags);
  compare('screen: mark', before.marks, after.marks);
  return lines;
}

/** Of these lines, those about something that the daemon reads. */
export function broken(lines, used) {
  const isUsed = (line) =>
    used.some((name) => line.startsWith(`${name} `) && line.endsWith(' vanished'));
  return lines.filter(isUsed);
}

/** The recorded shapes: by backend, then by version. */
export function recorded() {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
}

function filesIn(directory, ending) {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { recursive: true })
    .map((name) => join(directory, name))
    .filter((path) => path.endsWith(ending) && statSync(path).isFile())
    .sort();
}

function recordsIn(paths) {
  return paths.flatMap((path) =>
    readFileSync(path, 'utf8')
      .split('\n')
      .flatMap((line) => {
        try {
          const value = JSON.parse(line);
          return typeof value === 'object' && value !== null ? [value] : [];
        } catch {
          return [];
        }
      }),
  );
}

/** Status and evidence, without figures: which of its marks the daemon has seen on a screen. */
async function marksOf(world, cli) {
  const marks = new Set();
  const note = ({ status, status_reason: reason }) => {
    if (/screen|prompt is|asks/.test(reason ?? '')) marks.add(`${status}: ${reason.split(':')[0]}`);
  };
  const prompt = `[[wait 3000]] [[tool ${cli.readTool(world.repository)}]] [[wait 3000]] [[say seen]]`;
  const { id } = await world.spawn({ backend: cli.name, driver: 'tmux', prompt });
  await world.until(
    'its turn ends',
    async () => {
      const session = await world.session(id);
      note(session);
      return ['idle', 'errored', 'done'].includes(session.status);
    },
    120_000,
  );
  await world.stop(id);
  return [...marks].sort(byText);
}

/** Runs a CLI once headless and once in a terminal, and collects what it wrote. */
async function collect(world, cli) {
  const marks = await marksOf(world, cli);
  const prompt = `[[tool ${cli.readTool(world.repository)}]] [[say read it]]`;
  const { id } = await headless(world, cli, prompt);
  return {
    transcript: shapesOf(recordsIn(filesIn(join(world.home, places[cli.name] ?? '-'), '.jsonl'))),
    output: shapesOf(recordsIn([join(world.dataDir, 'sessions', id, 'output.log')])),
    flags: flagsIn(
      (helps[cli.name] ?? [[]]).map((words) => world.help(cli.name, words)).join('\n'),
    ),
    marks,
  };
}

const inOrder = (versions) =>
  Object.keys(versions).sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));

/** The differences of each recorded version to the one before it. */
export function changes(all = recorded()) {
  return Object.entries(all).flatMap(([name, versions]) =>
    inOrder(versions)
      .slice(1)
      .map((to, at) => {
        const from = inOrder(versions)[at];
        return { name, from, to, lines: differences(versions[from], versions[to]) };
      }),
  );
}

export const shapeCases = {
  'shapes: as recorded': async (world, cli) => {
    const version = cli.version();
    const all = recorded();
    const versions = all[cli.name] ?? {};
    const now = await collect(world, cli);
    const isNew = versions[version] === undefined;
    const base = isNew ? inOrder(versions).at(-1) : version;
    if (cli.isRecording) {
      all[cli.name] = { ...versions, [version]: now };
      writeFileSync(file, `${JSON.stringify(all, null, 1)}\n`);
    }
    if (base === undefined) return `${cli.name} ${version}: nothing recorded to compare with`;
    const lines = differences(versions[base], now);
    const gone = broken(lines, reads[cli.name] ?? []);
    if (gone.length > 0) {
      throw new Error(`${cli.name} ${version} lacks what the daemon reads: ${gone.join('; ')}`);
    }
    const head = `${cli.name} ${version} against ${base}: `;
    return head + (lines.length === 0 ? 'no difference' : lines.join('; '));
  },
};
