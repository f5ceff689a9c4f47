import { describe, expect, test } from 'vitest';
import { elect, votesNeeded, type Ballot, type Candidate } from './election.js';

const term = { epoch: 4, minAcks: 1, lineageId: 'L' };

const node = (nodeId: string, epoch: number, seq: number, voted = 4): Candidate => ({
  nodeId,
  vote: { term: voted, epoch, seq, lineageId: 'L' },
});

const ballot = (candidates: Candidate[], more: Partial<Ballot> = {}): Ballot => ({
  term,
  members: ['A', 'B', 'C'],
  candidates,
  isGraceOver: true,
  ...more,
});

describe('election', () => {
  test('elect: the later epoch wins over the higher seq', () => {
    expect(elect(ballot([node('A', 3, 90), node('B', 4, 50)]))).toEqual({
      kind: 'elect',
      nodeId: 'B',
      voters: ['A', 'B'],
    });
  });

  test('elect: of equal positions the lower node id wins, so that all nodes agree', () => {
    expect(elect(ballot([node('C', 4, 9), node('B', 4, 9)]))).toMatchObject({ nodeId: 'B' });
  });

  test('elect: with min_acks 1 one of three nodes may not decide alone', () => {
    expect(elect(ballot([node('A', 4, 9)]))).toEqual({
      kind: 'wait',
      reason: '1 of 3 members are here, 2 are needed',
    });
  });

  test('elect: with min_acks 2 every follower has all acknowledged writes', () => {
    const outcome = elect(ballot([node('A', 4, 9)], { term: { ...term, minAcks: 2 } }));
    expect(outcome).toMatchObject({ kind: 'elect', nodeId: 'A' });
  });

  test('elect: votes after an earlier leader do not count', () => {
    expect(elect(ballot([node('A', 4, 9), node('B', 4, 10, 3)]))).toMatchObject({ kind: 'wait' });
  });

  test('elect: nodes that are not members do not count', () => {
    expect(elect(ballot([node('A', 4, 9), node('X', 4, 10)]))).toMatchObject({ kind: 'wait' });
  });

  test('elect: waits for running nodes until the grace period is over', () => {
    const candidates = [node('A', 4, 9), node('B', 4, 9), { nodeId: 'C', vote: undefined }];
    expect(elect(ballot(candidates, { isGraceOver: false }))).toMatchObject({ kind: 'wait' });
    expect(elect(ballot(candidates))).toMatchObject({ kind: 'elect' });
  });

  test('elect: a node without the history of the cluster cannot lead', () => {
    const empty = { nodeId: 'A', vote: { term: 4, epoch: 0, seq: 0, lineageId: '' } };
    expect(elect(ballot([empty, node('B', 4, 1)]))).toMatchObject({ nodeId: 'B' });
    const other = { nodeId: 'B', vote: { term: 4, epoch: 9, seq: 9, lineageId: 'other' } };
    expect(elect(ballot([empty, other]))).toMatchObject({ kind: 'wait' });
  });

  test('elect: the first leader is the node with the most history', () => {
    const first = (nodeId: string, seq: number) => ({
      nodeId,
      vote: { term: 0, epoch: seq === 0 ? 0 : 1, seq, lineageId: seq === 0 ? '' : 'L' },
    });
    const outcome = elect(ballot([first('A', 0), first('B', 7)], { term: undefined }));
    expect(outcome).toMatchObject({ nodeId: 'B' });
  });

  test.each([
    [1, 0, 1],
    [3, 0, 1],
    [3, 1, 2],
    [3, 2, 1],
    [5, 1, 4],
    [5, 2, 3],
    [2, 1, 1],
    [1, 1, 1],
  ])('votesNeeded: %i members with min_acks %i need %i', (members, minAcks, needed) => {
    expect(votesNeeded(members, minAcks)).toBe(needed);
  });
});
