import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';

const docs = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'docs');
const groups = {
  tutorials: 'Tutorials',
  'how-to': 'How-to guides',
  explanation: 'Explanation',
  reference: 'Reference',
};

const titleOf = (file) => /^# (.+)$/m.exec(readFileSync(join(docs, file), 'utf8'))[1];
const pagesOf = (folder) =>
  readdirSync(join(docs, folder))
    .filter((name) => name.endsWith('.md') && name !== 'README.md')
    .map((name) => ({
      text: titleOf(`${folder}/${name}`),
      link: `/${folder}/${name.slice(0, -3)}`,
    }))
    .sort((a, b) => a.text.localeCompare(b.text));

/** A link to a file of the repository leads nowhere in a site; the build checks all others. */
function outsideAsText({ tokens, env }) {
  let isOutside = false;
  for (const token of tokens.flatMap(({ children }) => children ?? [])) {
    if (token.type === 'link_open') {
      const href = token.attrGet('href');
      const target = posix.join(posix.dirname(env.relativePath), href);
      isOutside = !/^[a-z]+:/.test(href) && target.startsWith('..');
      if (isOutside) Object.assign(token, { type: 'span_open', tag: 'span', attrs: [] });
    } else if (token.type === 'link_close' && isOutside) {
      Object.assign(token, { type: 'span_close', tag: 'span' });
      isOutside = false;
    }
  }
}

export default defineConfig({
  title: 'Millrace',
  description: 'Carries work to coding agents and keeps account of it.',
  srcDir: 'pages',
  outDir: '../dist/docs',
  cleanUrls: true,
  rewrites: {
    'README.md': 'index.md',
    'decisions/README.md': 'decisions/index.md',
    'reference/README.md': 'reference/index.md',
  },
  markdown: {
    languageAlias: { mjs: 'js' },
    config: (md) => md.core.ruler.push('outside', outsideAsText),
  },
  // Braces in a page are text, not templates.
  vue: { template: { compilerOptions: { delimiters: ['<%{', '}%>'] } } },
  themeConfig: {
    search: { provider: 'local' },
    nav: Object.entries(groups).map(([folder, text]) => ({ text, link: pagesOf(folder)[0].link })),
    sidebar: Object.entries(groups).map(([folder, text]) => ({
      text,
      collapsed: false,
      items: pagesOf(folder),
    })),
    outline: [2, 3],
  },
});
