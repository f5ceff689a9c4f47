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
