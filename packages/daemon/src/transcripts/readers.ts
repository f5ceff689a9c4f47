import { claudeReader } from './claude.js';
import { codexReader } from './codex.js';
import { geminiReader, opencodeReader, qwenReader } from './answers.js';
import type { TranscriptReader } from './reader.js';

/** Every command line whose transcripts are read. To add one, write its reader and add it here. */
export const transcriptReaders: readonly TranscriptReader[] = [
  claudeReader,
  codexReader,
  geminiReader,
  qwenReader,
  opencodeReader,
];
