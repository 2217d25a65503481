// A year of a nursery that ends on a good or a bad morning, for pictures and tests. The same every time.
import type { Batch } from '../src/data/batch';
import { plusDays, today } from './expected';

export const MORNINGS = ['good', 'bad', 'many', 'decline', 'first-day', 'empty'] as const;
export type Morning = (typeof MORNINGS)[number];

/** Name, average germination rate, and how far most batches are from it. */
const CROPS: readonly [string, number, number][] = [
  ["Basil 'Genovese'", 86, 4],
  ["Celery 'Tall Utah'", 83, 5],
  ["Cucumber 'Marketmore'", 95, 3],
  ["Leek 'Bleu de Solaise'", 88, 5],
  ["Lettuce 'Batavia'", 96, 2],
  ["Pepper 'Jalapeño'", 87, 5],
  ["Tomato 'Roma'", 94, 3],
  ["Viola 'Johnny Jump Up'", 86, 4],
];
const PEOPLE = ['ines.moreau', 'jan.devries', 'm.okafor'];
const COMMENTS = ['House 2, bench heating on', 'New substrate', 'Seed lot 4424'];
const CELLS = 104;

export function nursery(morning: Morning): Partial<Batch>[] {
  if (morning === 'empty') return [];
  if (morning === 'first-day') return [0, 1, 2].map((at) => batch(at, 0, at));
  const batches: Partial<Batch>[] = [];
  for (let days = 360; days >= 1; days--) {
    const isSunday = new Date(plusDays(today(), -days)).getUTCDay() === 0;
    for (let at = 0; at < (isSunday ? 0 : 4 + ((days * 7) % 5)); at++) batches.push(batch(batches.length, days, at));
  }
  if (morning === 'decline') return batches.map(weakerLeek);
  return morning === 'good' ? batches : [...batches, ...(morning === 'bad' ? twoFailed : manyFailed)(batches.length)];
}

const twoFailed = (first: number): Partial<Batch>[] => [
  { ...batch(first, 1, 9, 3), ...measured(41.35, 33.65), comment: 'House 2: heating mat was off' },
  { ...batch(first + 1, 1, 10, 1), ...measured(63.8, 55.1), warnings: true },
];

/** Nine batches of five crops: five in a house without heating, four elsewhere. */
const manyFailed = (first: number): Partial<Batch>[] =>
  Array.from({ length: 9 }, (_, at) => {
    const failed = batch(first + at, 1, at, [0, 3, 1, 6, 4][at % 5]);
    return {
      ...failed,
      ...measured(20.5 + at * 6, 15 + at * 5),
      batch_name: `${failed.crop_type!.split(' ')[0]} House ${at < 5 ? 3 : at}, bench ${at + 2}`,
      comment: at < 5 ? 'House 3: heating failed at night, 9 °C at 5 o’clock; vents were open until the morning shift came' : null,
      warnings: at === 8,
    };
  });

/** Five points less in the last four weeks. */
function weakerLeek(batch: Partial<Batch>): Partial<Batch> {
  if (!batch.crop_type!.startsWith('Leek') || batch.batch_creation_date! < plusDays(today(), -27)) return batch;
  return { ...batch, ...measured(Number(batch.avg_germination_rate) - 5, Number(batch.avg_usable_seedling_rate) - 5) };
}

/** The rates, and the counts that follow from them. */
function measured(rate: number, usable: number): Partial<Batch> {
  const cells = (share: number): string => ((share * CELLS) / 100).toFixed(2);
  return {
    total_cells_per_tray: CELLS,
    avg_germination_rate: rate.toFixed(2),
    avg_germinated_seedlings: cells(rate),
    avg_non_germinated_seedlings: cells(100 - rate),
    avg_usable_seedling_rate: usable.toFixed(2),
    avg_usable_seedlings: cells(usable),
    avg_non_usable_cells: cells(100 - usable),
  };
}

/** A number from 0 to 1 that looks random. */
const spread = (seed: number): number => (Math.sin(seed * 12.9898) * 43_758.5453) % 1;

function batch(seed: number, days: number, at: number, crop = (seed * 5 + days) % CROPS.length): Partial<Batch> {
  const [crop_type, average, range] = CROPS[crop]!;
  const rate = Math.min(99.5, average + spread(seed) * range);
  const usable = rate - 6 - Math.abs(spread(seed + 1)) * 3;
  return {
    batch_id: `batch-${seed}`,
    batch_name: `${crop_type.split(' ')[0]} bench ${1 + ((seed * 7) % 24)}`,
    batch_creation_date: `${plusDays(today(), -days)}T${String(days === 0 ? 0 : 6 + at).padStart(2, '0')}:${10 + ((seed * 7) % 50)}:00Z`,
    crop_type,
    ...measured(rate, usable),
    avg_coefficient_of_variation: (20 + spread(seed + 2) * 4).toFixed(2),
    avg_median_seedling_size_mm2: (150 + spread(seed + 3) * 40).toFixed(2),
    analysis_link: `https://scans.example.org/reports/batch-${seed}`,
    scanned_by_email: `${PEOPLE[seed % PEOPLE.length]}@example.org`,
    comment: seed % 6 === 0 ? COMMENTS[(seed / 6) % COMMENTS.length]! : null,
  };
}
