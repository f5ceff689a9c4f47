import type { Clock } from '@millrace/kit/clock';
import type { Random } from '@millrace/kit/random';
import { formatTimestamp } from '@millrace/kit/units';
import { appendEntry } from './append.js';
import type { Entry, Feature } from './entry.js';
import { readRatio, tokensIn, type Ratio } from './ratio.js';
import { saveSample } from './samples.js';

export interface RecorderParts {
  dataDir: string;
  clock: Clock;
  random: Random;
  /** The setting `savings_samples`: also keep the texts. */
  keepsSamples: boolean;
}

/** Who saved: a session and the repository it works in, where there is one. */
export interface Origin {
  agentId: string | null;
  repo: string | null;
}

/** A text of which only a part entered a model. */
export interface Shortening extends Origin {
  feature: Extract<Feature, 'check' | 'git'>;
  rawBytes: number;
  keptBytes: number;
  /** Asked for only if samples are kept. */
  texts: () => Promise<{ raw: string; kept: string }>;
}

export interface Compaction extends Origin {
  tokensBefore: number;
  tokensAfter: number;
}

/** Writes savings down, from the daemon and from the command line alike. */
export class SavingsRecorder {
  constructor(private readonly parts: RecorderParts) {}

  async recordShortening(shortening: Shortening): Promise<Entry> {
    const { feature, rawBytes, keptBytes, texts, agentId, repo } = shortening;
    const ratio = await this.#ratio();
    const entry = this.#entry({ feature, agentId, repo, rawBytes, keptBytes }, ratio);
    await this.#append(entry);
    if (this.parts.keepsSamples) await this.#saveSample(entry, await texts());
    return entry;
  }

  /** The local model read the prompt and wrote the answer in place of a cloud model. */
  async recordOffload(prompt: string, answer: string): Promise<Entry> {
    const outputBytes = Buffer.byteLength(answer);
    const rawBytes = Buffer.byteLength(prompt) + outputBytes;
    const ratio = await this.#ratio();
    const nobody = { agentId: null, repo: null };
    const entry = this.#entry(
      { feature: 'llm_offload', ...nobody, rawBytes, keptBytes: 0, outputBytes },
      ratio,
    );
    await this.#append(entry);
    return entry;
  }

  /** A session's context was compacted. Nothing is written unless it really became smaller. */
  async recordCompaction(compaction: Compaction): Promise<Entry | undefined> {
    const { tokensBefore, tokensAfter, agentId, repo } = compaction;
    if (tokensAfter >= tokensBefore) return undefined;
    const entry: Entry = {
      at: this.parts.clock.now(),
      feature: 'compact',
      agentId,
      repo,
      rawBytes: 0,
      keptBytes: 0,
      rawTokens: tokensBefore,
      keptTokens: tokensAfter,
      basis: 'MEASURED',
      outputBytes: 0,
      outputTokens: 0,
    };
    await this.#append(entry);
    return entry;
  }

  #ratio(): Promise<Ratio> {
    return readRatio(this.parts.dataDir);
  }

  #entry(
    given: Pick<Entry, 'feature' | 'agentId' | 'repo' | 'rawBytes' | 'keptBytes'> & {
      outputBytes?: number;
    },
    ratio: Ratio,
  ): Entry {
    const { rawBytes, keptBytes, outputBytes = 0 } = given;
    return {
      at: this.parts.clock.now(),
      feature: given.feature,
      agentId: given.agentId,
      repo: given.repo,
      rawBytes,
      keptBytes,
      rawTokens: tokensIn(rawBytes, ratio),
      keptTokens: tokensIn(keptBytes, ratio),
      basis: ratio.basis,
      outputBytes,
      outputTokens: tokensIn(outputBytes, ratio),
    };
  }

  #append(entry: Entry): Promise<void> {
    return appendEntry(this.parts.dataDir, entry);
  }

  #saveSample(entry: Entry, { raw, kept }: { raw: string; kept: string }): Promise<void> {
    const { at, feature, agentId, repo, rawTokens, keptTokens } = entry;
    return saveSample(this.parts.dataDir, this.parts.random.ulid(at), {
      ts: formatTimestamp(at),
      feature,
      agent_id: agentId,
      repo,
      raw,
      kept,
      raw_tokens: rawTokens,
      kept_tokens: keptTokens,
    });
  }
}
