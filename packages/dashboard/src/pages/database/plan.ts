import type { Plan } from './api.js';
import { count } from '../../parts/format.js';

export interface PlanStep {
  title: string;
  note: string;
  /** Whether it costs more than it needs to. */
  isCostly: boolean;
}

export interface ScanContext {
  collection: string;
  /** Records of the collection, when known. */
  records: number | undefined;
  /** Whether the query has a filter or an order; without one every record must be read. */
  couldUseIndex: boolean;
}

/** The steps of a plan, from the result down to the scan that feeds it. */
export function planSteps(
  plan: Plan,
  { collection, records, couldUseIndex }: ScanContext,
): PlanStep[] {
  const { index, full_scan, rows_scanned, rows_returned, sorted_in_memory } = plan;
  // A page reads one row more than it returns, and a group consists of many rows.
  const dropped = couldUseIndex ? rows_scanned - rows_returned : 0;
  const steps: PlanStep[] = [
    { title: 'First page', note: `${count(rows_returned)} rows returned`, isCostly: false },
  ];
  if (sorted_in_memory) {
    const note = 'every matching row is read before the first is returned';
    steps.push({ title: 'Sort in memory', note, isCostly: true });
  }
  if (dropped > 0) {
    const note = `${count(dropped)} of ${count(rows_scanned)} rows dropped`;
    steps.push({ title: 'Filter', note, isCostly: wastes(plan) });
  }
  const scanned = `${count(rows_scanned)} rows scanned`;
  if (full_scan) {
    const size = records === undefined ? '' : ` of ${count(records)}`;
    steps.push({
      // Without a filter and an order there is nothing to warn of.
      title: couldUseIndex ? `Full scan of ${collection}` : `All of ${collection} by id`,
      note: `${count(rows_scanned)}${size} rows scanned`,
      isCostly: dropped > 0,
    });
  } else {
    steps.push({ title: `index ${index || 'primary'}`, note: scanned, isCostly: false });
  }
  return steps;
}

/** An index pays off when most of the rows read are thrown away. */
export const wastes = ({ full_scan, rows_scanned, rows_returned }: Plan): boolean =>
  full_scan && rows_scanned > 1_000 && rows_scanned > rows_returned * 10;
