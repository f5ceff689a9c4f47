/** Which tests `npm test` leaves to `npm run test:campaigns`, and why. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from './prepare.mjs';

/** The tags of tests that only run at full size. Each says through what it repeats a behaviour. */
export const campaignTags = {
  'campaign-browser': 'one more path through a page whose main path is in npm test',
  'campaign-process': 'through processes, what npm test has in process or with one of them',
  'campaign-store': 'on PostgreSQL or another store, what npm test has on one',
  'campaign-transport': 'through a further transport, client, language or command',
  'campaign-docs': 'a page or an example that few new users read first',
  'campaign-cases': 'further cases, rounds, sizes or speeds of the same behaviour',
};

export const isFullCampaign = process.env.MILLRACE_CAMPAIGN === 'full';

/** vitest's own settings: the tags are a closed list, and `npm test` skips what has one. */
export const tags = Object.entries(campaignTags).map(([name, description]) => ({
  name,
  description,
  ...(!isFullCampaign && { skip: true }),
}));

/** Files that are wholly at full size are not even loaded by `npm test`. */
export const campaignPattern = '**/*.campaign.test.ts';

const isCampaignFile = (file) => file.endsWith('.campaign.test.ts');
const hasTwoSizes = new RegExp(
  `/support/campaign\\.js'|(?:${Object.keys(campaignTags).join('|')})'`,
);

/** Whether `npm run test:campaigns` runs a file: it, or what it imports, asks for the size. */
export function isInCampaign(file, text) {
  if (isCampaignFile(file) || hasTwoSizes.test(text)) return true;
  return [...text.matchAll(/ from '(\.[^']+)\.js'/g)].some(([, path]) => {
    const imported = join(root, dirname(file), `${path}.ts`);
    return existsSync(imported) && hasTwoSizes.test(readFileSync(imported, 'utf8'));
  });
}

export function campaignFiles() {
  return testFiles().filter((file) => isInCampaign(file, readFileSync(join(root, file), 'utf8')));
}

/** The tag of each file that `npm test` does not load. */
export function wholeFiles() {
  return testFiles()
    .filter(isCampaignFile)
    .map((file) => ({ file, tag: tagOf(readFileSync(join(root, file), 'utf8')) }));
}

function tagOf(text) {
  return /^\/\/ @module-tag ([\w-]+)\n/.exec(text)?.[1];
}

export function testFiles() {
  const packages = readdirSync(join(root, 'packages')).map((name) => `packages/${name}`);
  return ['test', ...packages].flatMap((folder) => testsIn(folder));
}

function testsIn(folder) {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return /^(?:node_modules|dist)$/.test(entry.name) ? [] : testsIn(path);
    return entry.name.endsWith('.test.ts') ? [path] : [];
  });
}
