import MiniSearch from 'minisearch';
import { createElement, useEffect, useMemo, useRef, type ReactNode } from 'react';
import address from 'virtual:docs';
import { useIdParam, useTextParam } from '../../parts/location.js';
import { Page, Panel } from '../../parts/page.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { Empty } from '../../parts/states.js';
import './help.css';

/** A text, or an element: its tag, what is in it, and where a link leads. */
type Node = string | readonly [tag: string, nodes: readonly Node[], href?: string];

interface Section {
  id: string;
  /** The path below docs/, without its ending. */
  page: string;
  pageTitle: string;
  title: string;
  anchor: string;
  body: readonly Node[];
}

const sections: readonly Section[] = await (await fetch(address)).json();

const maxFound = 30;
const excerptLength = 160;

const textOf = (nodes: readonly Node[]): string =>
  nodes.map((node) => (typeof node === 'string' ? node : `${textOf(node[1])} `)).join('');

const index = new MiniSearch({
  fields: ['title', 'pageTitle', 'text'],
  storeFields: ['page', 'pageTitle', 'title', 'anchor', 'text'],
  searchOptions: { boost: { title: 3, pageTitle: 2 }, prefix: true, combineWith: 'AND' },
});
index.addAll(sections.map(({ body, ...section }) => ({ ...section, text: textOf(body) })));

const groups = [
  ['tutorials/', 'Tutorials'],
  ['how-to/', 'How-to guides'],
  ['explanation/', 'Explanation'],
  ['reference/', 'Reference'],
] as const;

const hrefOf = (page: string, at = '') =>
  `#/help?${new URLSearchParams({ page, ...(at && { at }) })}`;

/** The documentation of this version: one search over all pages, without a network. */
export default function HelpPage() {
  const [text, setText] = useTextParam('q');
  const [page] = useIdParam('page');
  const search = useRef<HTMLInputElement>(null);
  useShortcut('/', 'Search the documentation', () => search.current?.focus());
  return (
    <Page title="Documentation" above={page && <a href="#/help">All pages</a>}>
      <input
        ref={search}
        type="search"
        className="help-search"
        aria-label="Search the documentation"
        placeholder="Redrive, spend cap, unique key, backup"
        value={text}
        onChange={({ target }) => setText(target.value)}
      />
      {text.trim() !== '' ? <Found text={text} /> : page ? <Read page={page} /> : <AllPages />}
    </Page>
  );
}

function Found({ text }: { text: string }) {
  const found = useMemo(() => {
    const exact = index.search(text);
    return (exact.length > 0 ? exact : index.search(text, { fuzzy: 0.2, combineWith: 'OR' })).slice(
      0,
      maxFound,
    );
  }, [text]);
  if (found.length === 0) {
    return <Empty title="Nothing matches.">Try another word, or a shorter one.</Empty>;
  }
  return (
    <ul className="help-found" aria-label="Results">
      {found.map(({ id, page, pageTitle, title, anchor, text: whole, terms }) => (
        <li key={id}>
          <a href={hrefOf(page, anchor)}>
            {title === pageTitle ? title : `${pageTitle}: ${title}`}
          </a>
          <p className="muted">{excerpt(whole, terms)}</p>
        </li>
      ))}
    </ul>
  );
}

/** The text around the first of the words. */
function excerpt(text: string, words: readonly string[]): string {
  const lower = text.toLowerCase();
  const at = Math.max(
    0,
    Math.min(...words.map((word) => lower.indexOf(word)).filter((n) => n >= 0)),
  );
  const start = Number.isFinite(at) ? Math.max(0, at - 40) : 0;
  return `${start > 0 ? '… ' : ''}${text.slice(start, start + excerptLength)} …`;
}

function Read({ page }: { page: string }) {
  const [at] = useIdParam('at');
  const parts = sections.filter((section) => section.page === page);
  useEffect(() => {
    if (at) document.getElementById(`doc-${at}`)?.scrollIntoView();
  }, [page, at]);
  if (parts.length === 0) {
    return (
      <Empty title="No such page.">
        <a href="#/help">All pages</a>
      </Empty>
    );
  }
  return (
    <article className="panel doc">
      {parts.map(({ id, title, anchor, body }) => (
        <section key={id} id={`doc-${anchor}`}>
          <h2>{title}</h2>
          {elementsOf(body)}
        </section>
      ))}
    </article>
  );
}

const elementsOf = (nodes: readonly Node[]): ReactNode[] =>
  nodes.map((node, at) => {
    if (typeof node === 'string') return node;
    const [tag, inner, href] = node;
    // A wide part scrolls by itself, also with the keyboard.
    const focus = (tag === 'pre' || tag === 'table') && { tabIndex: 0 };
    const outside = href?.startsWith('http') && { target: '_blank', rel: 'noreferrer' };
    return createElement(tag, { key: at, href, ...focus, ...outside }, ...elementsOf(inner));
  });

function AllPages() {
  const pages = [...new Map(sections.map((section) => [section.page, section.pageTitle]))];
  return groups.map(([start, name]) => (
    <Panel key={start} title={name}>
      <ul className="help-pages">
        {pages
          .filter(
            ([page]) => page.startsWith(start) || (start === 'explanation/' && !page.includes('/')),
          )
          .map(([page, title]) => (
            <li key={page}>
              <a href={hrefOf(page)}>{title}</a>
            </li>
          ))}
      </ul>
    </Panel>
  ));
}
