/**
 * How each real command-line agent is installed here and pointed at the fake model server. Every
 * one gets a HOME of its own and made-up keys.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const modules = join(dirname(fileURLToPath(import.meta.url)), 'node_modules');
const platform = `${process.platform}-${process.arch}`;

const noResume = 'a restart begins a new conversation with the prompt';
const noMcp = 'not part of this suite';
const noConducting = {
  'mcp: tools listed and called': noMcp,
  'mcp: agents as tools': noMcp,
  'plan: race and review': noMcp,
};
const noAsking = { 'headless: question answered': 'it cannot ask without a terminal' };
const silentRetries =
  'it retries up to ten times, 1 to 5 minutes apart, and prints nothing meanwhile';

const mcpTools = [
  'list_backends',
  'rescan_backends',
  'set_backend_tier',
  'set_default_backend',
  'set_thinking_mode',
  'set_force_compact',
  'get_branch_status',
  'savings',
  'spend',
];

const asksTwice =
  'it asks for the folder outside of its workspace, then for the command, with the same title';

/**
 * By backend id. `known` names the cases that do not work, and why; they are not run. `remarks`
 * says what a reader of a passed case has to know.
 */
export const clis = {
  claude: {
    binary: () => native(`@anthropic-ai/claude-code-${platform}`, 'claude'),
    // It needs a later Node than Millrace does.
    adapter: adapterOf('@agentclientprotocol/claude-agent-acp', 'claude-agent-acp', laterNode()),
    version: () => versionOf('@anthropic-ai/claude-code'),
    readTool: (folder) => `Read ${JSON.stringify({ file_path: join(folder, 'README.md') })}`,
    shellTool: (command) => `Bash ${JSON.stringify({ command, description: 'Run it' })}`,
    mcpTool: (name, input = {}) => `mcp__millrace__${name} ${JSON.stringify(input)}`,
    agentTool: (name, input) => `mcp__millrace__${name} ${JSON.stringify(input)}`,
    mcpTools: mcpTools.map((name) => `"mcp__millrace__${name}"`),
    compact: '/compact',
    contextWindow: 1_000_000,
    reportsDenial: true,
    tokens: (usages) => sumOf(usages, ['in'], ['out'], ['read'], ['write']),
    setUp({ home, modelUrl, workspaces, mcp }) {
      // The key is approved by its last 20 characters, and each workspace by its path.
      const projects = Object.fromEntries(
        workspaces.map((path) => [path, { hasTrustDialogAccepted: true }]),
      );
      writeJson(home, '.claude.json', {
        hasCompletedOnboarding: true,
        customApiKeyResponses: { approved: [madeUpKey.slice(-20)], rejected: [] },
        projects,
        mcpServers: { millrace: { type: 'stdio', ...mcp } },
      });
      writeJson(home, '.claude/settings.json', {
        permissions: { allow: ['mcp__millrace'] },
        // It would install its newest version for the whole machine.
        env: { DISABLE_AUTOUPDATER: '1' },
      });
      return { ANTHROPIC_BASE_URL: modelUrl, ANTHROPIC_API_KEY: madeUpKey, ...fewRetries };
    },
  },
  codex: {
    binary: () => native('@openai/codex', 'bin/codex.js'),
    adapter: adapterOf('@agentclientprotocol/codex-acp', 'codex-acp', process.execPath),
    version: () => versionOf('@openai/codex'),
    readTool: () => `exec_command ${JSON.stringify({ cmd: 'cat README.md' })}`,
    // A command that wants to leave the sandbox needs a permission.
    shellTool: (cmd) =>
      `exec_command ${JSON.stringify({ cmd, sandbox_permissions: 'require_escalated', justification: 'It is needed' })}`,
    mcpTool: (name, input = {}) => `mcp__millrace/${name} ${JSON.stringify(input)}`,
    // The tools that the daemon gives it, beside those of its own config.
    agentTool: (name, input) => `mcp__millrace_agents/${name} ${JSON.stringify(input)}`,
    mcpTools: mcpTools.map((name) => `"name":"${name}"`),
    compact: '/compact',
    contextWindow: 258_400,
    reportsReset: true,
    known: noAsking,
    // Its rollouts count cached tokens as input.
    tokens: (usages) => sumOf(usages, ['in', 'read'], ['out', 'reason'], [], []),
    setUp({ home, modelUrl, workspaces, mcp }) {
      const trusted = workspaces
        .map((path) => `[projects.${JSON.stringify(path)}]\ntrust_level = "trusted"\n`)
        .join('');
      write(
        home,
        '.codex/config.toml',
        `model = "gpt-5.1-codex"\nmodel_provider = "fake"\ncheck_for_update_on_startup = false\n` +
          `[model_providers.fake]\nname = "fake"\nbase_url = "${modelUrl}/v1"\n` +
          `env_key = "OPENAI_API_KEY"\nwire_api = "responses"\n` +
          `request_max_retries = 2\nstream_max_retries = 2\n` +
          `[mcp_servers.millrace]\ncommand = ${JSON.stringify(mcp.command)}\n` +
          `args = ${JSON.stringify(mcp.args)}\nrequired = true\nstartup_timeout_sec = 60\n${trusted}`,
      );
      return { OPENAI_API_KEY: madeUpKey, CODEX_HOME: join(home, '.codex') };
    },
  },
  gemini: {
    binary: () => native('@google/gemini-cli', binOf('@google/gemini-cli', 'gemini')),
    version: () => versionOf('@google/gemini-cli'),
    readTool: () => `read_file ${JSON.stringify({ file_path: 'README.md' })}`,
    shellTool: (command) => `run_shell_command ${JSON.stringify({ command })}`,
    compact: '/compress',
    reportsReset: true,
    tokens: (usages) => sumOf(usages, ['in'], ['out', 'reason'], ['read'], []),
    known: {
      ...noAsking,
      ...noConducting,
      'tmux: stop and resume': noResume,
    },
    setUp({ home, modelUrl }) {
      writeJson(home, '.gemini/settings.json', {
        security: { auth: { selectedType: 'gemini-api-key' } },
        general: { disableAutoUpdate: true, disableUpdateNag: true },
        privacy: { usageStatisticsEnabled: false },
      });
      return { GOOGLE_GEMINI_BASE_URL: modelUrl, GEMINI_API_KEY: madeUpKey };
    },
  },
  qwen: {
    binary: () => native('@qwen-code/qwen-code', binOf('@qwen-code/qwen-code', 'qwen')),
    version: () => versionOf('@qwen-code/qwen-code'),
    readTool: (folder) => `read_file ${JSON.stringify({ file_path: join(folder, 'README.md') })}`,
    shellTool: (command) =>
      `run_shell_command ${JSON.stringify({ command, is_background: false })}`,
    compact: '/compress',
    tokens: (usages) => sumOf(usages, ['in'], ['out', 'reason'], ['read'], []),
    known: {
      ...noAsking,
      'headless: 429 with reset time': silentRetries,
      ...noConducting,
    },
    setUp({ home, modelUrl }) {
      writeJson(home, '.qwen/settings.json', {
        security: { auth: { selectedType: 'openai' } },
        general: { disableAutoUpdate: true, disableUpdateNag: true },
        privacy: { usageStatisticsEnabled: false },
      });
      return {
        OPENAI_BASE_URL: `${modelUrl}/v1`,
        OPENAI_API_KEY: madeUpKey,
        OPENAI_MODEL: 'qwen3-coder',
      };
    },
  },
  opencode: {
    binary: () => native(`opencode-${platform}`, 'bin/opencode'),
    version: () => versionOf(`opencode-${platform}`),
    readTool: (folder) => `read ${JSON.stringify({ filePath: join(folder, 'README.md') })}`,
    tokens: (usages) => sumOf(usages, ['in'], ['out', 'reason'], ['read'], []),
    shellTool: (command) => `bash ${JSON.stringify({ command, description: 'Run it' })}`,
    questionsPerCommand: 2,
    remarks: {
      'acp: question answered': asksTwice,
      'tmux: question answered': asksTwice,
    },
    compact: '/compact',
    known: {
      ...noAsking,
      ...noConducting,
      'tmux: context and compaction': 'its compaction is no answer of the model that is counted',
      'tmux: stop and resume': noResume,
    },
    setUp({ home, modelUrl }) {
      writeJson(home, '.config/opencode/opencode.json', {
        autoupdate: false,
        permission: { bash: 'ask' },
        share: 'disabled',
        model: 'fake/fake-1',
        provider: {
          fake: {
            npm: '@ai-sdk/openai-compatible',
            name: 'fake',
            options: { baseURL: `${modelUrl}/v1`, apiKey: madeUpKey },
            models: { 'fake-1': { name: 'fake-1' } },
          },
        },
      });
      // It would fetch a list of models, plugins and language servers.
      return {
        OPENCODE_DISABLE_MODELS_FETCH: '1',
        OPENCODE_DISABLE_AUTOUPDATE: '1',
        OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
        OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
      };
    },
  },
};

/** A later version beside the pinned one: a row of its own, and the same backend. */
clis['codex-0.169'] = {
  ...clis.codex,
  name: 'codex',
  binary: () => native('codex-next', 'bin/codex.js'),
  version: () => versionOf('codex-next'),
};

/** Ten attempts of claude take minutes. */
const fewRetries = { CLAUDE_CODE_MAX_RETRIES: '2' };

const madeUpKey = 'made-up-key-for-a-fake-model-server-00000000000000000000';

/** What the daemon is to count of these answers: input, output, cache reads and cache writes. */
function sumOf(usages, ...fields) {
  const totalOf = (names) =>
    usages.reduce((sum, usage) => sum + names.reduce((all, name) => all + usage[name], 0), 0);
  return fields.map(totalOf);
}

function native(name, file) {
  const path = join(modules, name, file);
  return existsSync(path) ? path : undefined;
}

/**
 * A program from npm that speaks the Agent Client Protocol for a CLI; `missing` says why it cannot
 * run here.
 */
function adapterOf(name, program, node) {
  const file = native(name, binOf(name, program));
  const missing =
    file === undefined
      ? `${program} is not installed`
      : node === undefined && `${program} needs Node 22, which has no build for ${platform}`;
  return { program, version: versionOf(name), command: [node, file], ...(missing && { missing }) };
}

function laterNode() {
  return Number(process.versions.node.split('.')[0]) >= 22
    ? process.execPath
    : native(`node-${platform}`, 'bin/node');
}

function packageOf(name) {
  const file = join(modules, name, 'package.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
}

function versionOf(name) {
  return packageOf(name)?.version;
}

function binOf(name, command) {
  const { bin } = packageOf(name) ?? {};
  return typeof bin === 'string' ? bin : (bin?.[command] ?? 'missing');
}

function write(home, path, text) {
  const file = join(home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function writeJson(home, path, value) {
  write(home, path, JSON.stringify(value, null, 2));
}
