/** The figures of request-files.mjs, and the page that shows them: request-paths.md. */
import { format } from 'prettier';

const [from, to] = ['<!-- request files: begin -->', '<!-- request files: end -->'];

/** What is wrong with new measurements, or with the page, in view of the recorded counts. */
export async function problemsOf(measured, recorded, page) {
  const grown = Object.entries(measured)
    .filter(([title, files]) => files.length > totalOf(recorded[title] ?? {}))
    .map(
      ([title, files]) =>
        `"${title}" executes ${files.length} files; request-files.json has ` +
        `${totalOf(recorded[title] ?? {})}. Use fewer files.`,
    );
  const problems = [...grown, ...strangersIn(page, measured)];
  if ((await pageWith(page, recorded)) !== page) {
    problems.push('The table of request-paths.md differs from request-files.json.');
  }
  if (problems.length > 0) {
    problems.push('Record new counts with: npm run request-files -- --update');
  }
  return problems;
}

/** Files that the page names under a request that does not execute them. */
function strangersIn(page, measured) {
  const sections = page.split(/^## /m).slice(1);
  return sections.flatMap((section) => {
    const title = section.slice(0, section.indexOf('\n'));
    return Array.from(section.matchAll(/^\d+\. `(\S+)\.ts`/gm), ([, file]) => file)
      .filter((file) => !measured[title]?.includes(file))
      .map((file) => `request-paths.md: "${title}" does not execute ${file}.ts`);
  });
}

export function pageWith(page, all) {
  const rows = Object.entries(all).map(
    ([title, counts]) => `| ${title} | ${totalOf(counts)} | ${listOf(counts)} |`,
  );
  const table = ['| Request | Files | By package |', '| --- | ---: | --- |', ...rows].join('\n');
  const [before, rest] = page.split(from);
  const [, after] = rest.split(to);
  return format(`${before}${from}\n\n${table}\n\n${to}${after}`, { parser: 'markdown' });
}

export function countsOf(files) {
  const counts = {};
  for (const [, owner] of files.map((file) => /^(\w+)/.exec(file))) {
    counts[owner] = (counts[owner] ?? 0) + 1;
  }
  return counts;
}

export function totalOf(counts) {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

export function listOf(counts) {
  return Object.entries(counts)
    .map(([owner, count]) => `${owner} ${count}`)
    .join(', ');
}
