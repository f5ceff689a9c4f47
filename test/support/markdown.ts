import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

export interface Fence {
  file: string;
  language: string;
  text: string;
  /** The last second-level heading before it. */
  section: string;
}

export function read(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

export function markdownFiles(folder = root): string[] {
  const passedOver = new Set(['node_modules', 'dist', 'coverage']);
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      return passedOver.has(entry.name) || entry.name.startsWith('.') ? [] : markdownFiles(path);
    }
    return entry.name.endsWith('.md') ? [relative(root, path)] : [];
  });
}

/** The fences of a page in their order, those in lists included. */
export function fencesOf(file: string, page = read(file)): Fence[] {
  const fences: Fence[] = [];
  let open: (Fence & { indent: string }) | undefined;
  let section = '';
  for (const line of page.split('\n')) {
    const [, indent = '', language] = /^( *)```(\S*)$/.exec(line) ?? [];
    if (open && language === '' && indent === open.indent) {
      const { indent: _, ...fence } = open;
      fences.push(fence);
      open = undefined;
    } else if (open) {
      open.text += `${line.startsWith(open.indent) ? line.slice(open.indent.length) : line}\n`;
    } else if (language !== undefined) open = { file, language, text: '', section, indent };
    else if (line.startsWith('## ')) section = line.slice(3);
  }
  if (open) throw new Error(`${file}: a fence is never closed:\n${open.text.slice(0, 200)}`);
  return fences;
}

export function fencesIn(file: string, section: string, language: string): string[] {
  return fencesOf(file)
    .filter((fence) => fence.section === section && fence.language === language)
    .map(({ text }) => text);
}

/** The commands of a page's shell fences, without their comments. */
export function commandsOf(file: string, page?: string): string[] {
  return fencesOf(file, page)
    .filter(({ language }) => shellLanguages.includes(language))
    .flatMap(({ text }) => text.replaceAll(/\\\n\s*/g, '').split('\n'))
    .map((line) => line.replace(/\s+# .*$/, '').trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
}

const shellLanguages = ['sh', 'bash', 'shell', 'console'];

/** Pages with commands in them. */
export const pagesWithCommands = markdownFiles().filter((file) => commandsOf(file).length > 0);
