/** The pages of docs/ in sections, for the search of the dashboard. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lexer } from 'marked';

const home = dirname(fileURLToPath(import.meta.url));
export const docsFolder = join(home, '..', '..', '..', 'docs');

/** Decisions and the design are for people who change Millrace. */
const isShown = (name) =>
  name.endsWith('.md') && !/^decisions|README\.md$|^design|^\.\./.test(name);

/** What the page Documentation shows: a section each, in the order of its page. */
export function docSections() {
  return readdirSync(docsFolder, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter(isShown)
    .sort()
    .flatMap((name) => sectionsOf(name, readFileSync(join(docsFolder, name), 'utf8')));
}

function sectionsOf(name, text) {
  const page = name.replace(/\.md$/, '');
  const tokens = lexer(text);
  const isHead = ({ type, depth }) => type === 'heading' && depth <= 2;
  const starts = tokens.flatMap((token, index) => (isHead(token) ? [index] : []));
  const titles = starts.map((start) => tokens[start].text.replaceAll(/[`*]/g, ''));
  return starts.map((start, index) => ({
    id: `${page}#${index}`,
    page,
    pageTitle: titles[0],
    title: titles[index],
    anchor: anchorOf(titles[index]),
    body: nodesOf(tokens.slice(start + 1, starts[index + 1]), page),
  }));
}

const anchorOf = (title) =>
  title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');

const nodesOf = (tokens, page) => tokens.map((token) => nodeOf(token, page)).filter(Boolean);
const tags = { paragraph: 'p', strong: 'strong', em: 'em', blockquote: 'blockquote', del: 'del' };

/** A text, or an element as `[tag, nodes, address]`. The page allows no HTML. */
function nodeOf(token, page) {
  const { type } = token;
  const inner = () => nodesOf(token.tokens, page);
  const row = (tag, cells) => ['tr', cells.map(({ tokens }) => [tag, nodesOf(tokens, page)])];
  if (type === 'code') return ['pre', [token.text]];
  if (type === 'codespan') return ['code', [token.text]];
  if (type === 'heading') return ['h3', inner()];
  if (type === 'list') {
    return [
      token.ordered ? 'ol' : 'ul',
      token.items.map(({ tokens }) => ['li', nodesOf(tokens, page)]),
    ];
  }
  if (type === 'table') {
    const body = ['tbody', token.rows.map((cells) => row('td', cells))];
    return ['table', [['thead', [row('th', token.header)]], body]];
  }
  if (type === 'link') return linkOf(token.href, inner(), page);
  if (tags[type]) return [tags[type], inner()];
  if (type === 'text' || type === 'escape') return token.tokens ? ['span', inner()] : token.text;
  if (type === 'br') return '\n';
  // Pictures show what the reader has before them.
  if (type === 'space' || type === 'image' || token.raw.startsWith('<!--')) return undefined;
  throw new Error(`docs/${page}.md has a ${type}, which the page Documentation cannot show`);
}

/** Links to other pages open in the dashboard; those to source files are text. */
function linkOf(href, nodes, page) {
  if (/^https?:/.test(href)) return ['a', nodes, href];
  const [path, at] = href.split('#');
  const target = path === '' ? `${page}.md` : posix.join(posix.dirname(page), path);
  if (!isShown(target)) return ['span', nodes];
  const params = new URLSearchParams({ page: target.replace(/\.md$/, ''), ...(at && { at }) });
  return ['a', nodes, `#/help?${params}`];
}
