/** Text cut into words. */
export interface Tokens {
  readonly words: readonly string[];
  /** A quote or bracket is still open: the text goes on in the next line. */
  readonly isOpen: boolean;
}

const closers: Readonly<Record<string, string>> = { '{': '}', '[': ']' };

/**
 * Cuts a line into words at spaces, except inside quotes and inside the brackets of JSON, so that
 * `put people ada {"name": "Ada L."}` is four words. Quotes stay where they are: to a condition
 * `zip="8001"` is not `zip=8001`.
 */
export function tokenize(text: string): Tokens {
  const words: string[] = [];
  let word = '';
  let quote = '';
  const brackets: string[] = [];
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!;
    if (quote !== '') {
      word += char;
      if (char === '\\' && quote === '"' && at + 1 < text.length) word += text[++at]!;
      else if (char === quote) quote = '';
    } else if (opensQuote(char, word, brackets.length)) {
      quote = char;
      word += char;
    } else if (/\s/.test(char) && brackets.length === 0) {
      if (word !== '') words.push(word);
      word = '';
    } else {
      if ((char === '{' || char === '[') && opensJson(word, brackets.length)) {
        brackets.push(closers[char]!);
      } else if (char === brackets.at(-1)) brackets.pop();
      word += char;
    }
  }
  if (word !== '') words.push(word);
  return { words, isOpen: quote !== '' || brackets.length > 0 };
}

/** An apostrophe inside a word, as in `name=O'Brien`, is just that. */
function opensQuote(char: string, word: string, depth: number): boolean {
  if (char === '"') return true;
  return char === "'" && depth === 0 && (word === '' || /[=~<>,]$/.test(word));
}

/** JSON begins a word or follows an operator; elsewhere a bracket is a letter like any other. */
function opensJson(word: string, depth: number): boolean {
  return depth > 0 || word === '' || /[=~<>,]$/.test(word);
}

/** A word without the quotes around it. */
export function unquote(word: string): string {
  if (/^"(?:[^"\\]|\\.)*"$/s.test(word)) {
    try {
      return String(JSON.parse(word));
    } catch {
      // Not JSON's way of quoting, but still quoted.
      return word.slice(1, -1);
    }
  }
  return /^'[^']*'$/s.test(word) ? word.slice(1, -1) : word;
}
