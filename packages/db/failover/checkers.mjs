/**
 * Checks of what clients saw during fail-overs. Pure functions, tested with planted violations.
 *
 * An operation on a key: { kind: 'write' | 'read', value, start, end }. `end` is Infinity when the
 * client does not know whether a write was applied. The value of a key that was never written is
 * undefined.
 */

/**
 * Whether the operations on one key are linearizable: there is an order that respects real time in
 * which every read returns the last written value. Each value is written once, so the zones of
 * Gibbons and Korach (Testing Shared Memories, 1997) decide. The operations on a value must lie
 * together in the order, and its zone is from the first end to the last start among them. If it
 * ends before it starts, they can all take place at any one moment in between.
 */
export function isLinearizable(operations) {
  const values = new Map([
    [undefined, { start: -Infinity, ends: [-Infinity], starts: [-Infinity] }],
  ]);
  for (const { kind, value, start, end } of operations) {
    if (kind !== 'write') continue;
    if (values.has(value)) throw new Error(`The value ${value} was written twice`);
    values.set(value, { start, ends: [end], starts: [start] });
  }
  for (const { kind, value, start, end } of operations) {
    if (kind !== 'read') continue;
    const written = values.get(value);
    if (!written || end < written.start) return false;
    written.ends.push(end);
    written.starts.push(start);
  }
  const zones = Array.from(values.values(), ({ ends, starts }) => ({
    firstEnd: ends.reduce((a, b) => Math.min(a, b)),
    lastStart: starts.reduce((a, b) => Math.max(a, b)),
    // A write without a known result that nobody read may not have taken place.
  })).filter(({ firstEnd }) => firstEnd !== Infinity);
  const isForward = ({ firstEnd, lastStart }) => firstEnd < lastStart;
  const forward = zones.filter(isForward).sort((a, b) => a.firstEnd - b.firstEnd);
  for (let i = 1; i < forward.length; i++) {
    if (forward[i].firstEnd < forward[i - 1].lastStart) return false;
  }
  const isInside = (zone) =>
    forward.some(
      ({ firstEnd, lastStart }) => firstEnd < zone.lastStart && zone.firstEnd < lastStart,
    );
  return !zones.some((zone) => !isForward(zone) && isInside(zone));
}

/** The keys whose operations are not linearizable. */
export function violatedKeys(operations) {
  const byKey = new Map();
  for (const operation of operations) {
    const list = byKey.get(operation.key) ?? [];
    list.push(operation);
    byKey.set(operation.key, list);
  }
  return [...byKey].flatMap(([key, list]) => (isLinearizable(list) ? [] : [key]));
}

/** Acknowledged values that are missing, and values that are there more than once. */
export function insertProblems(acknowledged, found) {
  const counts = new Map();
  for (const value of found) counts.set(value, (counts.get(value) ?? 0) + 1);
  return {
    lost: acknowledged.filter((value) => !counts.has(value)),
    doubled: [...counts].flatMap(([value, count]) => (count > 1 ? [value] : [])),
  };
}

/**
 * Records that were updated more or less often than clients know: every update raises the revision
 * by one. `counters` are { key, rev, acknowledged, unknown }, all updates after revision 1.
 */
export function updateProblems(counters) {
  return counters.flatMap(({ key, rev, acknowledged, unknown }) => {
    const updates = rev - 1;
    return updates < acknowledged || updates > acknowledged + unknown ? [key] : [];
  });
}

/** Epochs that more than one node has led. `promotions` are { node, epoch }. */
export function sharedEpochs(promotions) {
  const leaders = new Map();
  const shared = new Set();
  for (const { node, epoch } of promotions) {
    if (leaders.has(epoch) && leaders.get(epoch) !== node) shared.add(epoch);
    leaders.set(epoch, node);
  }
  return [...shared];
}

/** The value below which this share of the sorted values lies; undefined without values. */
export function percentile(values, share) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}
