import type { Clock } from '@millrace/kit/clock';
import type { Random } from '@millrace/kit/random';
import { formatTimestamp } from '@millrace/kit/units';
import { appendEntry } from './ledger.js';
import type { Entry, Feature } from './entry.js';
import { readRatio, tokensIn, saveSample, type Ratio } from './calibrate.js';

export interface RecorderParts {
  dataDir: string;
  clock: Clock;
  random: Random;
  /** The setting `savings_samples`: also store the texts. */
  keepsSamples: boolean;
}

/** Attribution of a saving: session and repository, if any. */
export interface Origin {
  agentId: string | null;
  repo: string | null;
}

/** A text that was shortened before it entered a model. */
export interface Shortening extends Origin {
  feature: Extract<Feature, 'check' | 'git'>;
  rawBytes: number;
  retainedBytes: number;
  /** Called only if samples are stored. */
  texts: () => Promise<{ raw: string; kept: string }>;
}

export interface Compaction extends Origin {
  tokensBefore: number;
  tokensAfter: number;
}

/** Records savings, in the daemon and in `ctl`. */
export class SavingsRecorder {
  constructor(private readonly parts: RecorderParts) {}

  async recordShortening(shortening: Shortening): Promise<Entry> {
    const { feature, rawBytes, retainedBytes, texts, agentId, repo } = shortening;
    const ratio = await this.#ratio();
    const entry = this.#entry({ feature, agentId, repo, rawBytes, retainedBytes }, ratio);
    await this.#append(entry);
    if (this.parts.keepsSamples) await this.#saveSample(entry, await texts());
    return entry;
  }

  /**
   * The local model answered in place of a cloud model. Its own token counts are used; the ratio
   * of bytes to tokens is only for servers that report none.
   */
  async recordOffload(
    prompt: string,
    answer: string,
    tokens?: { input: number; output: number },
  ): Promise<Entry> {
    const outputBytes = Buffer.byteLength(answer);
    const rawBytes = Buffer.byteLength(prompt) + outputBytes;
    const ratio = await this.#ratio();
    const nobody = { agentId: null, repo: null };
    const estimate = this.#entry(
      { feature: 'llm_offload', ...nobody, rawBytes, retainedBytes: 0, outputBytes },
      ratio,
    );
    const entry: Entry = tokens
      ? {
          ...estimate,
          rawTokens: tokens.input + tokens.output,
          outputTokens: tokens.output,
          basis: 'MEASURED',
        }
      : estimate;
    await this.#append(entry);
    return entry;
  }

  /** A session's context was compacted. Recorded only if it became smaller. */
  async recordCompaction(compaction: Compaction): Promise<Entry | undefined> {
    const { tokensBefore, tokensAfter, agentId, repo } = compaction;
    if (tokensAfter >= tokensBefore) return undefined;
    const entry: Entry = {
      at: this.parts.clock.now(),
      feature: 'compact',
      agentId,
      repo,
      rawBytes: 0,
      retainedBytes: 0,
      rawTokens: tokensBefore,
      retainedTokens: tokensAfter,
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
    given: Pick<Entry, 'feature' | 'agentId' | 'repo' | 'rawBytes' | 'retainedBytes'> & {
      outputBytes?: number;
    },
    ratio: Ratio,
  ): Entry {
    const { rawBytes, retainedBytes, outputBytes = 0 } = given;
    return {
      at: this.parts.clock.now(),
      feature: given.feature,
      agentId: given.agentId,
      repo: given.repo,
      rawBytes,
      retainedBytes,
      rawTokens: tokensIn(rawBytes, ratio),
      retainedTokens: tokensIn(retainedBytes, ratio),
      basis: ratio.basis,
      outputBytes,
      outputTokens: tokensIn(outputBytes, ratio),
    };
  }

  #append(entry: Entry): Promise<void> {
    return appendEntry(this.parts.dataDir, entry);
  }

  #saveSample(entry: Entry, { raw, kept }: { raw: string; kept: string }): Promise<void> {
    const { at, feature, agentId, repo, rawTokens, retainedTokens } = entry;
    return saveSample(this.parts.dataDir, this.parts.random.ulid(at), {
      ts: formatTimestamp(at),
      feature,
      agent_id: agentId,
      repo,
      raw,
      kept,
      raw_tokens: rawTokens,
      kept_tokens: retainedTokens,
    });
  }
}
