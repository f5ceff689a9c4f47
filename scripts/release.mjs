/**
 * `npm run release -- --dry-run`: checks versions and CHANGELOG.md, builds, packs every published
 * package and the SDKs for Python and Go into dist/release, writes an SBOM and checksums. Without --dry-run it then publishes,
 * which only a tagged commit may do.
 *
 * `npm run release -- --set-version 0.2.0` writes a version into all packages and turns Unreleased
 * of CHANGELOG.md into its section.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { readOptions } from './options.mjs';
import { prepare, root, say } from './prepare.mjs';

const { values: flags } = readOptions({
  name: 'release',
  about: `Checks versions and CHANGELOG.md, builds, packs every published package, writes an SBOM and
checksums, and publishes, which only a tagged commit may do.`,
  options: {
    'dry-run': { type: 'boolean', help: 'Do everything but publish' },
    'set-version': {
      type: 'string',
      help: 'Only write this version into all packages and CHANGELOG.md',
    },
    out: { type: 'string', help: 'Where packages go (default: dist/release)' },
  },
});
const chart = 'packaging/helm/Chart.yaml';
const pyproject = 'sdks/python/pyproject.toml';
const manifests = ['package.json', ...packageFolders().map((name) => `${name}/package.json`)];
try {
  if (flags['set-version'] === undefined) release();
  else setVersion(flags['set-version']);
} catch (error) {
  say(`release: ${error.message}`);
  process.exitCode = 1;
}

function release() {
  const version = checkVersions();
  checkChangelog(version);
  if (!flags['dry-run']) checkTag(version);
  prepare();
  const out = resolve(root, flags.out ?? 'dist/release');
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const names = inOrder();
  if (!flags['dry-run']) nameRepository(names);
  pack(names, out);
  packSdks(version, out);
  writeSbom(version, out);
  writeChecksums(out);
  for (const file of readdirSync(out).sort()) say(`  ${file}`);
  if (flags['dry-run']) {
    say(`Ready to publish ${names.length} packages of version ${version}; nothing was published.`);
    return;
  }
  for (const name of names) npm(['publish', tarballOf(name, version, out), '--provenance']);
  say(`Published ${names.length} packages of version ${version}.`);
}

function packageFolders() {
  return readdirSync(join(root, 'packages')).map((name) => `packages/${name}`);
}

function read(file) {
  return readFileSync(join(root, file), 'utf8');
}

/** All packages have one version and depend on exactly that version of each other. */
function checkVersions() {
  const { version } = JSON.parse(read('packages/millrace/package.json'));
  for (const file of manifests) {
    const manifest = JSON.parse(read(file));
    if (manifest.version !== version) {
      throw new Error(`${file} has version ${manifest.version}, packages/millrace ${version}.`);
    }
    for (const [name, wanted] of ownDependencies(manifest)) {
      if (wanted !== version) throw new Error(`${file} depends on ${name} ${wanted}.`);
    }
  }
  const [, python] = /^version = "(.*)"$/m.exec(read(pyproject)) ?? [];
  if (python !== version) {
    throw new Error(`${pyproject} has version ${python}, packages/millrace ${version}.`);
  }
  return version;
}

function ownDependencies({ dependencies = {}, devDependencies = {} }) {
  return Object.entries({ ...dependencies, ...devDependencies }).filter(([name]) =>
    name.startsWith('@millrace/'),
  );
}

/** A dry run accepts entries under Unreleased; a release needs a section with a date. */
function checkChangelog(version) {
  const text = read('CHANGELOG.md');
  const released = sectionOf(text, version);
  if (released !== undefined) {
    if (!/^\[[^\]]+\] - \d{4}-\d{2}-\d{2}\n/.test(released)) {
      throw new Error(`CHANGELOG.md: the section of ${version} has no date.`);
    }
    if (!/^- /m.test(released)) throw new Error(`CHANGELOG.md: ${version} lists no change.`);
    return;
  }
  if (!flags['dry-run']) {
    throw new Error(
      `CHANGELOG.md has no section ${version}. Write it with: npm run release -- ` +
        `--set-version ${version}`,
    );
  }
  if (!/^- /m.test(sectionOf(text, 'Unreleased') ?? '')) {
    throw new Error(`CHANGELOG.md has no section ${version}, and Unreleased lists no change.`);
  }
}

function sectionOf(text, name) {
  return text.split(/^## /m).find((section) => section.startsWith(`[${name}]`));
}

function checkTag(version) {
  const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  if (git('status', '--porcelain') !== '') throw new Error('The working tree has changes.');
  const tags = git('tag', '--points-at', 'HEAD').split('\n');
  if (!tags.includes(`v${version}`)) throw new Error(`This commit has no tag v${version}.`);
}

/** The published packages, dependencies first. */
function inOrder() {
  const published = new Map(
    packageFolders()
      .map((folder) => JSON.parse(read(`${folder}/package.json`)))
      .filter((manifest) => manifest.private !== true)
      .map((manifest) => [manifest.name, manifest]),
  );
  const ordered = new Set();
  const add = (manifest) => {
    for (const name of Object.keys(manifest.dependencies ?? {})) {
      if (published.has(name)) add(published.get(name));
      else if (name.startsWith('@millrace/')) {
        throw new Error(`${manifest.name} depends on ${name}, which is not published.`);
      }
    }
    ordered.add(manifest.name);
  };
  published.forEach(add);
  return [...ordered];
}

/** Provenance needs the repository that the workflow runs in. */
function nameRepository(names) {
  const { GITHUB_REPOSITORY: repository, GITHUB_SERVER_URL: server } = process.env;
  if (!repository) throw new Error('GITHUB_REPOSITORY is not set: publish from the workflow.');
  const url = `git+${server ?? 'https://github.com'}/${repository}.git`;
  const workspaces = names.flatMap((name) => ['-w', name]);
  npm(['pkg', 'set', 'repository.type=git', `repository.url=${url}`, ...workspaces]);
}

function pack(names, out) {
  npm(['pack', '--silent', '--pack-destination', out, ...names.flatMap((name) => ['-w', name])]);
}

/** The Python SDK as wheel and sdist where `build` is installed, else its sources; Go as sources. */
function packSdks(version, out) {
  const home = mkdtempSync(join(tmpdir(), 'millrace-release-'));
  const python = join(home, 'millrace-python');
  try {
    // A copy: build leaves its own folders behind.
    for (const [language, folder] of [
      ['python', python],
      ['go', join(home, 'millrace-go')],
    ]) {
      cpSync(join(root, 'sdks', language), folder, { recursive: true, filter: isSource });
    }
    const built = spawnSync('python3', ['-m', 'build', '--no-isolation', '--outdir', out, python], {
      encoding: 'utf8',
    });
    const isMissing = built.error || /No module named build/.test(built.stderr);
    if (!isMissing && built.status !== 0) throw new Error(`python3 -m build: ${built.stderr}`);
    if (isMissing) say('python3 -m build is not installed: the Python SDK is packed as sources.');
    for (const name of isMissing ? ['millrace-python', 'millrace-go'] : ['millrace-go']) {
      const file = join(out, `${name}-${version}.tar.gz`);
      execFileSync('tar', ['-czf', file, '-C', home, name], { stdio: 'inherit' });
    }
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

function isSource(path) {
  return !/__pycache__|\.egg-info|\.pyc$|[\\/](build|dist)$/.test(path);
}

function tarballOf(name, version, out) {
  return join(out, `${name.replace('@', '').replace('/', '-')}-${version}.tgz`);
}

/** Lists all that the packages contain or install. `npm sbom --omit dev` leaves out too much. */
function writeSbom(version, out) {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'];
  const sbom = JSON.parse(npm([...args, '--sbom-type', 'application']));
  // npm takes the name of the directory.
  sbom.metadata.component.name = 'millrace';
  const inDashboard = Object.keys(
    JSON.parse(read('packages/dashboard/package.json')).devDependencies,
  ).filter((name) => !/^@types\/|vite/.test(name));
  const isShipped = ({ name, properties }) =>
    inDashboard.includes(name) ||
    !properties.some((one) => one.name === 'cdx:npm:package:development');
  sbom.components = sbom.components.filter(isShipped);
  const refs = new Set(sbom.components.map((one) => one['bom-ref']));
  sbom.dependencies = sbom.dependencies
    .filter(({ ref }) => refs.has(ref) || ref === sbom.metadata.component['bom-ref'])
    .map((one) => ({ ...one, dependsOn: one.dependsOn.filter((ref) => refs.has(ref)) }));
  writeFileSync(join(out, `millrace-${version}.cdx.json`), `${JSON.stringify(sbom, null, 2)}\n`);
}

function writeChecksums(out) {
  const lines = readdirSync(out)
    .sort()
    .map((file) => {
      const digest = createHash('sha256').update(readFileSync(join(out, file)));
      return `${digest.digest('hex')}  ${file}\n`;
    });
  writeFileSync(join(out, 'SHA256SUMS'), lines.join(''));
}

function setVersion(version) {
  if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)) throw new Error(`"${version}" is no version.`);
  const before = checkVersions();
  const changelog = read('CHANGELOG.md');
  const date = new Date().toISOString().slice(0, 10);
  const heading = `## [Unreleased]\n\n## [${version}] - ${date}\n`;
  if (sectionOf(changelog, version) === undefined) {
    writeFileSync(
      join(root, 'CHANGELOG.md'),
      changelog.replace('## [Unreleased]\n', () => heading),
    );
  }
  for (const file of manifests) {
    const manifest = JSON.parse(read(file));
    manifest.version = version;
    for (const kind of ['dependencies', 'devDependencies']) {
      for (const name of Object.keys(manifest[kind] ?? {})) {
        if (name.startsWith('@millrace/')) manifest[kind][name] = version;
      }
    }
    writeFileSync(join(root, file), `${JSON.stringify(manifest, null, 2)}\n`);
  }
  const project = read(pyproject).replace(/^version = ".*"$/m, `version = "${version}"`);
  writeFileSync(join(root, pyproject), project);
  const ofChart = read(chart).replaceAll(/^((?:v|appV)ersion): .*$/gm, `$1: ${version}`);
  writeFileSync(join(root, chart), ofChart);
  npm(['install', '--package-lock-only', '--ignore-scripts', '--no-audit', '--no-fund']);
  say(`Version ${before} -> ${version}. Commit it, and tag the commit v${version}.`);
}

function npm(args) {
  const stdio = ['ignore', 'pipe', 'inherit'];
  return execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio, maxBuffer: 2 ** 28 });
}
