import { isSynthetic, objectIn, textIn } from './output-reader.js';
import type { Entry } from '../../core/session.js';
import { lastLines, findTranscript, type TranscriptParts } from './transcript.js';

type JsonObject = Readonly<Record<string, unknown>>;

/** Answers are in the end of a transcript, also below large outputs of tools. */
const maxBytes = 4 * 1_048_576;

/** The agent's last answer, from its own transcript; undefined when there is none. */
export async function lastAnswer(
  parts: Pick<TranscriptParts, 'places' | 'taken' | 'settings' | 'opencodeAnswer'>,
  entry: Entry,
): Promise<string | undefined> {
  const { cli } = entry.handle;
  const { backend_session_id: own } = entry.session;
  if (cli === 'opencode' && own !== null) return parts.opencodeAnswer?.(own);
  const answerIn = Object.hasOwn(answers, cli) ? answers[cli] : undefined;
  if (!answerIn) return undefined;
  const found = await findTranscript(parts, entry);
  if (!found) return undefined;
  return answerIn(await lastLines(found.path, maxBytes));
}

const answers: Readonly<Record<string, (lines: readonly JsonObject[]) => string | undefined>> = {
  claude: claudeAnswer,
  codex: codexAnswer,
  gemini: geminiAnswer,
  qwen: qwenAnswer,
};

/** Claude writes each block of a message as a separate line with the message id. */
export function claudeAnswer(lines: readonly JsonObject[]): string | undefined {
  const said = lines.flatMap((line) => {
    const message = objectIn(line, 'message');
    const isOwn = line['type'] === 'assistant' && line['isSidechain'] !== true;
    if (!isOwn || line['isApiErrorMessage'] === true || isSynthetic(message)) return [];
    const text = textsIn(message?.['content']);
    return text === '' ? [] : { id: textIn(message, 'id'), text };
  });
  const last = said.at(-1);
  if (!last) return undefined;
  const parts = said.filter(({ id }) => id !== undefined && id === last.id);
  return parts.length === 0 ? last.text : parts.map(({ text }) => text).join('\n');
}

function textsIn(content: unknown): string {
  if (!Array.isArray(content)) return '';
  const texts = content.map((block: unknown) => textIn(block as JsonObject, 'text') ?? '');
  return texts.filter((text) => text !== '').join('\n');
}

/** An event of earlier versions; later ones have the end of the turn and the message itself. */
export function codexAnswer(lines: readonly JsonObject[]): string | undefined {
  const said = lines.flatMap((line) => {
    const payload = objectIn(line, 'payload');
    if (payload?.['role'] === 'assistant') return textsIn(payload['content']);
    if (payload?.['type'] === 'agent_message') return textIn(payload, 'message') ?? [];
    return textIn(payload, 'last_agent_message') ?? [];
  });
  return said.findLast((text) => text.trim() !== '');
}

export function geminiAnswer(lines: readonly JsonObject[]): string | undefined {
  const said = lines.filter((line) => line['type'] === 'gemini').map((line) => line['content']);
  return said.findLast((text) => typeof text === 'string' && text.trim() !== '') as
    string | undefined;
}

export function qwenAnswer(lines: readonly JsonObject[]): string | undefined {
  const said = lines.flatMap((line) => {
    const parts = objectIn(line, 'message')?.['parts'];
    if (line['type'] !== 'assistant' || !Array.isArray(parts)) return [];
    return textsIn(parts.filter((part: JsonObject) => part['thought'] !== true));
  });
  return said.findLast((text) => text !== '');
}
