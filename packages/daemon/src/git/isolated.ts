import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '@millrace/kit/clock';
import { whenThere } from '@millrace/kit/errors';
import type { ProgramEnd } from '../registry/run-program.js';

export type Variables = Readonly<Record<string, string>>;

/** What an isolated run gets: variables for git, and the settings it may take over. */
export interface Isolation {
  variables: Variables;
  settings: readonly ConfigPair[];
}

/**
 * Runs with a git directory of the daemon's own, which has the objects, index and working tree of
 * the repository, but not its config. So a program that the repository names cannot be found, also
 * when the repository is changed meanwhile. Answers the end of a preparation that failed.
 */
export async function isolated(
  kind: IsolationKind,
  place: Place,
  git: (args: readonly string[]) => Promise<ProgramEnd>,
  run: (isolation: Isolation) => Promise<ProgramEnd>,
): Promise<ProgramEnd> {
  const found = await repositoryAt(kind, place, git);
  if ('kind' in found) return found;
  const { paths, config } = found;
  const directory = await mkdtemp(join(tmpdir(), 'millrace-git-'));
  try {
    const variables = await prepare(kind, directory, paths);
    return await run({ variables, settings: allowedSettings(kind, config) });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Where a command runs, and when. */
export interface Place {
  cwd: string;
  environment: Readonly<Record<string, string | undefined>>;
  clock: Pick<Clock, 'monotonic'>;
}

interface Repository {
  paths: Paths;
  /** The settings of all scopes. */
  config: string;
}

/** An action of a user runs a dozen commands; asking git twice for each made half of its time. */
const sharedMs = 2_000;
const maxShared = 100;
const shared = new Map<string, Repository & { until: number; marks: string }>();

/** Paths and settings of a repository, read again when it has changed; or why git refuses it. */
async function repositoryAt(
  kind: IsolationKind,
  { cwd, environment, clock }: Place,
  git: (args: readonly string[]) => Promise<ProgramEnd>,
): Promise<Repository | ProgramEnd> {
  const args = pathArgs(kind);
  const key = JSON.stringify([cwd, args, environment['HOME'], environment['PATH']]);
  const known = shared.get(key);
  if (known && clock.monotonic() < known.until) {
    if ((await marksOf(cwd, known.paths)) === known.marks) return known;
  }
  shared.delete(key);
  const [shown, listed] = await Promise.all([
    git(args),
    git(['config', '--list', '--null', '--show-scope']),
  ]);
  if (shown.kind !== 'exited' || shown.code !== 0) return shown;
  if (listed.kind !== 'exited' || listed.code !== 0) return listed;
  const found = { paths: pathsIn(shown.stdout), config: listed.stdout };
  // A push takes settings of the network, of which none may be old.
  if (kind === 'push' || kind === 'gh') return found;
  const marks = await marksOf(cwd, found.paths);
  shared.set(key, { ...found, marks, until: clock.monotonic() + sharedMs });
  const [oldest] = shared.keys();
  if (shared.size > maxShared) shared.delete(oldest!);
  return found;
}

/** Differs when a directory was made again, or a config file of the repository was written. */
async function marksOf(cwd: string, { gitDir, common }: Paths): Promise<string> {
  const files = [join(common, 'config'), join(gitDir, 'config.worktree'), join(cwd, '.git')];
  const marks = [cwd, gitDir, ...files].map(async (path) => {
    const found = await stat(path).catch(() => undefined);
    if (!found || found.isDirectory()) return [found?.ino, found?.birthtimeMs];
    return [found.ino, found.size, found.mtimeMs, found.ctimeMs];
  });
  return JSON.stringify(await Promise.all(marks));
}

function pathArgs(kind: IsolationKind): string[] {
  const paths = ['objects', 'index', 'shallow', 'packed-refs'].flatMap((name) => [
    '--git-path',
    name,
  ]);
  const top = kind === 'files' ? ['--show-toplevel'] : [];
  const directories = ['--git-dir', '--git-common-dir'];
  return ['rev-parse', '--path-format=absolute', '--show-object-format', ...directories].concat(
    paths,
    top,
  );
}

function pathsIn(stdout: string) {
  const [format = '', gitDir = '', common = '', objects = '', index = '', ...rest] =
    stdout.split('\n');
  const [shallow = '', packedRefs = '', top = ''] = rest;
  return { format, gitDir, common, objects, index, shallow, packedRefs, top };
}

type Paths = ReturnType<typeof pathsIn>;

async function prepare(kind: IsolationKind, directory: string, paths: Paths): Promise<Variables> {
  await mkdir(join(directory, 'info'));
  const version = `[core]\n\trepositoryformatversion = 1\n\tbare = ${kind !== 'files'}\n`;
  const config = `${version}[extensions]\n\tobjectFormat = ${paths.format}\n`;
  await writeFile(join(directory, 'config'), config);
  const common = {
    GIT_DIR: directory,
    GIT_OBJECT_DIRECTORY: paths.objects,
    ...(existsSync(paths.shallow) && { GIT_SHALLOW_FILE: paths.shallow }),
  };
  if (kind === 'gh') {
    await copyIfThere(join(paths.gitDir, 'HEAD'), join(directory, 'HEAD'));
    await copyIfThere(paths.packedRefs, join(directory, 'packed-refs'));
    await symlink(join(paths.common, 'refs'), join(directory, 'refs'));
    return common;
  }
  // Commands get commits, not names: there are no refs.
  await writeFile(join(directory, 'HEAD'), 'ref: refs/heads/none\n');
  await mkdir(join(directory, 'refs'));
  if (kind === 'push') return { ...common, GIT_ALLOW_PROTOCOL: 'https:http:ssh:file' };
  // Filters and drivers of the user's own config are left out too.
  const alone = { ...common, GIT_CONFIG_GLOBAL: '/dev/null' };
  if (kind === 'objects') return alone;
  for (const name of ['attributes', 'exclude']) {
    await copyIfThere(join(paths.common, 'info', name), join(directory, 'info', name));
  }
  const sparse = join('info', 'sparse-checkout');
  await copyIfThere(join(paths.gitDir, sparse), join(directory, sparse));
  // A split index has a part of its own name beside it; the next write joins them.
  for (const name of await namesIn(paths.gitDir)) {
    if (!name.startsWith('sharedindex.')) continue;
    await copyIfThere(join(paths.gitDir, name), join(directory, name));
  }
  return { ...alone, GIT_INDEX_FILE: paths.index, GIT_WORK_TREE: paths.top };
}

function allowedSettings(kind: IsolationKind, listed: string): ConfigPair[] {
  const parts = listed.split('\0');
  const isPrivate = kind === 'files' || kind === 'objects';
  const pairs: ConfigPair[] = [['core.splitIndex', 'false']];
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [scope, entry] = [parts[at]!, parts[at + 1]!];
    const end = entry.indexOf('\n');
    const name = end < 0 ? entry : entry.slice(0, end);
    // The user's config is read as it is, except for files.
    const isOurs = isPrivate ? scope !== 'command' : /^(?:local|worktree)$/.test(scope);
    // A name without a value is true.
    if (isOurs && isAllowedKey(kind, name))
      pairs.push([name, end < 0 ? 'true' : entry.slice(end + 1)]);
  }
  return pairs;
}

/** Nothing of a worktree that is removed meanwhile: git says so itself. */
async function namesIn(directory: string): Promise<string[]> {
  return (await whenThere(readdir(directory))) ?? [];
}

async function copyIfThere(from: string, to: string): Promise<void> {
  await whenThere(copyFile(from, to));
}

/* Which settings git may take from a repository, and which settings run programs. */

/**
 * Settings that git may take from a repository for commands that read or write files. They are
 * values; none names a program. Everything else in the config of the repository is not read.
 */
const fileKeys = [
  'core.(attributesfile|autocrlf|bigfilethreshold|checkroundtripencoding|checkstat|compression)',
  'core.(eol|excludesfile|filemode|ignorecase|longpaths|precomposeunicode|protecthfs|protectntfs)',
  'core.(safecrlf|sparsecheckout|sparsecheckoutcone|symlinks|trustctime)',
  '(author|committer|user).(name|email)',
  'diff.(algorithm|indentheuristic|renamelimit|renames)',
  'diff..+.binary',
  'i18n.commitencoding',
  'merge.(conflictstyle|directoryrenames|renamelimit|renames)',
];

const httpNames =
  '(extraheader|lowspeedlimit|lowspeedtime|postbuffer|proxy|proxyauthmethod|sslcainfo|sslcapath|' +
  'sslcert|sslkey|sslverify|useragent|version)';

/** How to reach a server. Helpers for passwords and the SSH command are the user's own. */
const pushKeys = [`http.${httpNames}`, `http..+.${httpNames}`];

/** What gh reads to find the repository on GitHub. */
const remoteKeys = [
  'remote..+.(url|pushurl|fetch|gh-resolved)',
  'branch..+.(remote|merge|pushremote|gh-merge-base)',
  'url..+.(insteadof|pushinsteadof)',
];

export type IsolationKind = 'files' | 'objects' | 'push' | 'gh';

const allowed: Readonly<Record<IsolationKind, RegExp>> = {
  files: anyOf(fileKeys),
  objects: anyOf(fileKeys),
  push: anyOf(pushKeys),
  gh: anyOf(remoteKeys),
};

/** Names are as `git config --list` prints them: section and variable in lower case. */
export function isAllowedKey(kind: IsolationKind, name: string): boolean {
  return allowed[kind].test(name);
}

/** A dot matches itself, and `.+` matches a subsection. */
function anyOf(patterns: readonly string[]): RegExp {
  const sources = patterns.map((each) => each.replaceAll(/\.(?!\+)/g, String.raw`\.`));
  return new RegExp(`^(?:${sources.join('|')})$`, 's');
}

export type ConfigPair = readonly [name: string, value: string];

/**
 * Settings that could run a program in commands on refs and commits, which read the config of the
 * repository. A setting in the environment overrides that of every config file.
 */
export const safeSettings: readonly ConfigPair[] = [
  ['core.alternateRefsCommand', 'false'],
  ['core.askPass', 'false'],
  ['core.editor', 'false'],
  ['core.fsmonitor', 'false'],
  ['core.gitProxy', 'none'],
  ['core.hooksPath', '/dev/null'],
  ['core.pager', 'cat'],
  ['core.sshCommand', 'false'],
  ['credential.helper', ''],
  ['diff.external', ''],
  ['fetch.recurseSubmodules', 'false'],
  ['gc.auto', '0'],
  ['gc.recentObjectsHook', ''],
  ['gpg.program', 'false'],
  ['gpg.openpgp.program', 'false'],
  ['gpg.ssh.defaultKeyCommand', ''],
  ['gpg.ssh.program', 'false'],
  ['gpg.x509.program', 'false'],
  ['log.showSignature', 'false'],
  ['maintenance.auto', 'false'],
  ['protocol.ext.allow', 'never'],
  ['push.gpgSign', 'false'],
  ['push.negotiate', 'false'],
  ['push.recurseSubmodules', 'no'],
  ['sequence.editor', 'false'],
  ['submodule.recurse', 'false'],
];
