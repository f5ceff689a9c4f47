/** Text split into words. */
export interface Tokens {
  readonly words: readonly string[];
  /** A quote or bracket is open: the text continues on the next line. */
  readonly isOpen: boolean;
}

const closers: Readonly<Record<string, string>> = { '{': '}', '[': ']' };

/**
 * Splits a line at spaces, except inside quotes and JSON brackets, so that `put people ada {"name":
 * "Ada L."}` is four words. Keeps quotes, because `zip="8001"` and `zip=8001` are different
 * conditions.
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

/** An apostrophe inside a word, as in `name=O'Brien`, is not a quote. */
function opensQuote(char: string, word: string, depth: number): boolean {
  if (char === '"') return true;
  return char === "'" && depth === 0 && (word === '' || /[=~<>,]$/.test(word));
}

/** JSON starts a word or follows an operator; elsewhere a bracket is an ordinary character. */
function opensJson(word: string, depth: number): boolean {
  return depth > 0 || word === '' || /[=~<>,]$/.test(word);
}

/** Removes the quotes around a word. */
export function unquote(word: string): string {
  if (/^"(?:[^"\\]|\\.)*"$/s.test(word)) {
    try {
      return String(JSON.parse(word));
    } catch {
      // Quoted, but not as JSON.
      return word.slice(1, -1);
    }
  }
  return /^'[^']*'$/s.test(word) ? word.slice(1, -1) : word;
}
