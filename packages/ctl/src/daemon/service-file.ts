import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

type Environment = Readonly<Record<string, string | undefined>>;

export type Manager = 'systemd' | 'launchd';

/** A file with which the service manager of the system runs the daemon for this user. */
export interface ServiceFile {
  readonly path: string;
  readonly text: string;
  /** Commands that activate it, for a shell. */
  readonly commands: readonly string[];
  /** What the service manager calls it. */
  readonly id: string;
}

/** The program and its arguments, without a shell. */
export interface Service {
  /** What it runs: everything, or one server. Default: the daemon. */
  readonly part?: keyof typeof titles;
  readonly command: readonly string[];
  /** Services start with a minimal PATH, which lacks the command lines of agents. */
  readonly searchPath: string;
}

export function serviceFile(manager: Manager, service: Service, env: Environment): ServiceFile {
  return manager === 'systemd' ? systemdUnit(service, env) : launchdPlist(service, env);
}

const titles = {
  up: 'Millrace',
  db: 'Millrace database',
  queue: 'Millrace queue',
  daemon: 'Millrace agent daemon',
};

function systemdUnit(
  { command, searchPath, part = 'daemon' }: Service,
  env: Environment,
): ServiceFile {
  const unitName = part === 'up' ? 'millrace.service' : `millrace-${part}.service`;
  const base = env['XDG_CONFIG_HOME'];
  const config = base && isAbsolute(base) ? base : join(homeOf(env), '.config');
  const text = `[Unit]
Description=${titles[part]}
StartLimitIntervalSec=60
StartLimitBurst=5

[Service]
ExecStart=${command.map((word) => systemdWord(word.replaceAll('$', '$$$$'))).join(' ')}
Environment=${systemdWord(`PATH=${searchPath}`)}
Restart=on-failure
RestartSec=2
# Agents live in terminals of their own and outlast a restart of the daemon.
KillMode=process
TimeoutStopSec=${part === 'daemon' ? 30 : 60}

[Install]
WantedBy=default.target
`;
  return {
    path: join(config, 'systemd', 'user', unitName),
    text,
    id: unitName,
    commands: ['systemctl --user daemon-reload', `systemctl --user enable --now ${unitName}`],
  };
}

/** Quotes a word if necessary and escapes `%`. */
function systemdWord(word: string): string {
  const plain = word.replaceAll('%', '%%');
  return /^[\w@%+=:,./$-]+$/.test(plain)
    ? plain
    : `"${plain.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

function launchdPlist(
  { command, searchPath, part = 'daemon' }: Service,
  env: Environment,
): ServiceFile {
  const label = part === 'up' ? 'millrace' : `millrace.${part}`;
  const home = homeOf(env);
  const path = join(home, 'Library', 'LaunchAgents', `${label}.plist`);
  const words = command.map((word) => `    <string>${xmlText(word)}</string>`).join('\n');
  const log = xmlText(join(home, 'Library', 'Logs', `${label.replace('.', '-')}.log`));
  const text = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${label}</string>
  <key>ProgramArguments</key>
  <array>
${words}
  </array>
  <key>EnvironmentVariables</key>
  <dict>
    <key>PATH</key>
    <string>${xmlText(searchPath)}</string>
  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>AbandonProcessGroup</key>
  <true/>
  <key>StandardErrorPath</key>
  <string>${log}</string>
</dict>
</plist>
`;
  return {
    path,
    text,
    id: label,
    commands: [`launchctl bootstrap gui/$(id -u) ${shellWord(path)}`],
  };
}

function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

function homeOf(env: Environment): string {
  return env['HOME'] || homedir();
}
