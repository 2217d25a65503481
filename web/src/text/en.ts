// The English texts. Every other language has the same keys.
import type { Failure } from '../data/errors';
import type { Range, Reason } from '../data/outliers';
import type { Preset } from '../data/period';
import type { Measure, Step } from '../data/statistics';
import { ago, count, date, decimal, percent } from '../data/format';

const batches = (n: number): string => (n === 1 ? '1 batch' : `${count(n)} batches`);
const typical = (range: Range | null): string =>
  range === null ? '' : ` (typical: ${percent(range.low, 0)} to ${percent(range.high, 0)})`;

const MINUTE_MS = 60_000;

export const en = {
  batches,
  /** "12 of 30 batches". */
  someBatches: (some: number, all: number): string => `${count(some)} of ${batches(all)}`,
  cropNotRecorded: 'Crop not recorded',
  unknownOperator: 'Person not recorded',
  quoted: (text: string): string => `“${text}”`,
  otherCrops: 'Other crops',

  fields: {
    batch_id: 'Batch ID',
    batch_name: 'Name',
    batch_creation_date: 'Scanned',
    crop_type: 'Crop',
    number_of_images: 'Images',
    total_cells_per_tray: 'Cells per tray',
    avg_germinated_seedlings: 'Germinated seedlings',
    avg_non_germinated_seedlings: 'Non-germinated cells',
    avg_germination_rate: 'Germination rate',
    avg_usable_seedlings: 'Usable seedlings',
    avg_non_usable_cells: 'Non-usable cells',
    avg_usable_seedling_rate: 'Usable rate',
    avg_coefficient_of_variation: 'Size variation',
    avg_median_seedling_size_mm2: 'Median size',
    scanned_by_email: 'Scanned by',
    analysis_link: 'Analysis report',
    comment: 'Comment',
    warnings: 'Warnings',
  },
  perTray: 'per tray',
  measures: { germination: 'Germination rate', usable: 'Usable rate' } satisfies Record<Measure, string>,

  layout: {
    skip: 'Skip to content',
    home: 'batchscan overview',
    navigation: 'Main',
    overview: 'Overview',
    batches: 'Batches',
    signOut: 'Sign out',
    themeTo: { light: 'Switch to light', dark: 'Switch to dark' },
    documentation: 'API documentation',
    language: 'Language',
    localTimes: (zone: string): string => `Dates and times in ${zone}.`,
    utcTimes: 'Dates and times in UTC.',
    showUtc: 'Show UTC',
    showLocal: 'Show local time',
    dismiss: 'Dismiss',
    options: 'Options',
    linkFailed: (why: string): string => `Sign-in link failed. ${why}`,
    invalidDates: 'The dates in this link are invalid. They were ignored.',
  },

  notFound: {
    title: 'Page not found',
    text: 'There is no page at this address.',
    back: 'Go to the overview',
  },

  signIn: {
    title: 'Sign in',
    intro: 'See what your tray scanners measured: germination, usable seedlings and uniformity.',
    ask: 'Ask your administrator for the client ID and secret, or for a sign-in link.',
    clientId: 'Client ID',
    clientSecret: 'Client secret',
    keep: 'Keep me signed in on this device',
    keepNote: 'For 90 days, or until you sign out. The secret is never stored.',
    submit: 'Sign in',
    submitting: 'Signing in…',
    again: 'Sign in again',
    expired: 'Your session has expired. Sign in again, or ask for a new sign-in link.',
    error: (failure: Failure): string => {
      switch (failure.kind) {
        case 'wrong-credentials':
        case 'signed-out':
          return 'Wrong client ID or secret. Check both and try again.';
        case 'used-link':
          return 'This sign-in link was already used or has expired. Ask for a new one.';
        case 'unavailable':
          return 'The service is unavailable. Try again in a few seconds.';
        case 'offline':
          return 'The service is unreachable. Check your connection and try again.';
        case 'rejected':
          return `The service rejected the sign-in: ${failure.detail}`;
      }
    },
    retrying: 'This page retries every few seconds.',
  },

  period: {
    presets: {
      '1d': 'Today',
      yesterday: 'Yesterday',
      'since-friday': 'Since Friday',
      'this-week': 'This week',
      'last-week': 'Last week',
      'this-month': 'This month',
      'last-month': 'Last month',
      '30d': 'Last 30 days',
      '90d': 'Last 90 days',
      '365d': 'Last 365 days',
      'this-year': 'This year',
      'last-year': 'Last year',
    } satisfies Record<Preset, string>,
    presetsLabel: 'Presets',
    from: 'From',
    to: 'To',
    days: (n: number): string => (n === 1 ? '1 day' : `${count(n)} days`),
    /** As part of a sentence. */
    phrase: (from: string, to: string): string =>
      from === to ? `on ${date(from)}` : `from ${date(from)} to ${date(to)}`,
    reversed: (from: string, to: string): string =>
      `“From” is after “To”. Set “To” to ${date(from)} or later, or “From” to ${date(to)} or earlier.`,
    tooLong: (days: number): string => `The period can have at most ${count(days)} days.`,
  },

  filters: {
    label: 'Period and filters',
    button: (active: number): string => (active === 0 ? 'Filters' : `Filters (${count(active)})`),
    crops: {
      label: 'Crop',
      all: 'All crops',
      some: (n: number): string => `${count(n)} crops`,
      none: 'No crops in this period.',
    },
    show: 'Show',
    all: 'All',
    unusual: 'Unusual',
    withWarnings: 'With warnings',
    withoutWarnings: 'Without warnings',
    operators: {
      label: 'Scanned by',
      all: 'Anyone',
      some: (n: number): string => `${count(n)} people`,
      none: 'No scans in this period.',
    },
    search: 'Search',
    searchExample: 'Name, day, week 46',
    clear: 'Clear filters',
  },

  loading: {
    label: 'Loading',
    progress: 'Loading progress',
    start: 'Loading batches…',
    upTo: (day: string): string => `, up to ${date(day)}`,
    running: (n: number, upTo: string): string => `Loading: ${batches(n)} so far${upTo}.`,
    partial: (n: number, upTo: string): string => `Partly loaded: ${batches(n)}${upTo}.`,
    tooMany: (n: number, upTo: string): string =>
      `More than ${batches(n)} in this period. Showing the oldest ${count(n)}${upTo}. Select a shorter period to see all.`,
    stopped: (n: number, upTo: string): string => `Loading stopped: ${batches(n)}${upTo}.`,
    expired: 'Your session has expired.',
    waiting: 'Waiting for the service.',
    unavailable: 'The service is unavailable.',
    lost: 'The connection is lost.',
    retryingIn: 'Retrying in',
    asOf: (time: string): string => `As of ${time}.`,
    outdated: (ageMs: number): string => `Showing data from ${ageMs < MINUTE_MS ? 'just now' : ago(ageMs)}.`,
    backToOverview: 'Back to overview',
    backTo: (what: string): string => `Back to ${what}`,
    previous: (n: number): string => `Loading previous period: ${batches(n)}`,
    cancel: 'Cancel',
    continue: 'Continue',
    retry: 'Retry now',
    refresh: 'Refresh',
    unavailableTitle: 'The service is unavailable',
    unreachableTitle: 'The service is unreachable',
    usually: 'This usually lasts less than a minute.',
    expiredTitle: 'Your session has expired',
    signInToContinue: 'Sign in again to continue.',
    rejectedTitle: 'The service rejected the request',
    noReason: 'No reason was given.',
    status: (detail: string, status: number): string => `${detail} (status ${status})`,
    cancelledTitle: 'Loading cancelled',
    nothingYet: 'Nothing was loaded yet.',
    unreadable: "The service's response could not be read.",
  },

  empty: {
    noneTitle: 'No batches yet',
    none: 'Batches appear here after the first import.',
    periodTitle: 'No scans in this period',
    period: (phrase: string): string => `There are no batches ${phrase}.`,
    latest: (day: string): string => `The latest scan was on ${date(day)}.`,
    showLatest: 'Show that day',
    showYear: 'Show last 365 days',
    filterTitle: 'No batches match your filters',
    filter: 'Try removing a filter.',
    search: 'Search and filters look only at the period shown.',
    correction: (text: string): string => `Did you mean “${text}”?`,
    searchYear: (n: number | null): string => `Search last 365 days${n === null ? '' : ` (${batches(n)})`}`,
  },

  recent: {
    yesterday: 'Since yesterday',
    unusual: (n: number, others: number): string =>
      `${others === 0 ? '' : ` (${count(others)} not compared)`}, ${n === 0 ? 'none unusual.' : `${count(n)} unusual:`}`,
  },

  figures: {
    label: 'Key figures',
    batches: 'Batches',
    images: 'Images',
    warnings: 'With warnings',
    before: (value: number): string => `${count(value)} before`,
    fromNormal: (points: number): string =>
      points === 0 ? 'normal' : `${decimal(Math.abs(points), 1)} points ${points > 0 ? 'above' : 'below'} normal`,
    normal: 'Normal: the average of the same crops in the last 365 days. A value outside the typical range counts as its nearest end.',
    previous: (period: string, isDay: boolean): string =>
      `Before: the ${isDay ? 'day a week earlier' : 'previous period'}, ${period}.`,
    failed: 'The previous period could not be loaded.',
    pending: 'Comparison appears when loading finishes.',
  },

  panel: {
    asTable: 'Show as table',
    tableLabel: (title: string): string => `${title} as a table`,
    noRates: 'No rates measured in this period.',
    crop: 'Crop',
    batch: 'Batch',
    batches: 'Batches',
    images: 'Images',
    mean: 'Average',
    median: 'Median',
    noScans: 'No scans',
    noRate: 'No rate measured',
  },

  rates: {
    title: (measure: string): string => `${measure} over time`,
    choice: 'Rate',
    steps: { day: 'Day', week: 'Week of', month: 'Month' } satisfies Record<Step, string>,
    weekNumber: (week: number): string => `W${week}`,
    weekOf: (day: string): string => `Week of ${day}`,
    single: (mean: string): string => `Average ${mean}.`,
    soFar: { day: 'Today so far', week: 'This week so far', month: 'This month so far' } satisfies Record<Step, string>,
    soFarKey: 'Hollow dot: still running.',
    summary: (highWhen: string, high: string, lowWhen: string, low: string, last: string): string =>
      `Highest ${highWhen} (${high}), lowest ${lowWhen} (${low})${last}.`,
    last: (step: Step, day: string, mean: string): string => `, last full ${step} (${day}) ${mean}`,
    when: (step: Step, day: string): string =>
      step === 'week' ? `in the week of ${day}` : step === 'day' ? `on ${day}` : `in ${day}`,
    below: (mean: string, week: string, points: string, normal: string): string =>
      `${mean} since the week of ${week}: ${points} points below normal (${normal}).`,
    typicalFrom: (low: string): string => `Typical from ${low}`,
    normal: (rate: string): string => `Normal ${rate}`,
    typicalTo: (high: string): string => `Typical up to ${high}`,
    decline: (day: string): string => `Below normal since ${day}`,
    onlyCrop: (crop: string): string => `Show only ${crop}`,
    low: '10% are below',
    high: '10% are above',
    spread: 'Middle 80%',
    key: 'Line: average; shaded: middle 80% of batches.',
    zoom: 'Drag to zoom to a period.',
    average: (crop: string, mean: string, n: number): string => `${crop}: average ${mean} of ${batches(n)}.`,
    scale: (low: string, high: string): string => `All on the same scale, ${low} to ${high}. Dotted line: all crops.`,
    omitted: (n: number): string =>
      `${n === 1 ? 'One more crop is' : `${count(n)} more crops are`} in the chart by crop below.`,
  },

  compare: {
    title: 'Compare',
    choice: 'Compare',
    by: { crop: 'Two crops', operator: 'Two people', year: 'A year earlier' },
    first: 'First',
    second: 'Second',
    thisPeriod: 'This period',
    lastYear: 'A year earlier',
    none: { crop: 'All batches shown are of one crop.', operator: 'All batches shown are by one person.' },
    summary: (a: string, meanA: string, b: string, meanB: string): string => `${a}: ${meanA}. ${b}: ${meanB}.`,
    byCrop: 'Lines adjusted for crop: as if both had scanned the same crops.',
    noDifference: 'No real difference, compared with what is normal for the crops. ',
    tooFew: 'Too few batches to say which is better. ',
    few: 'few batches',
    better: (side: string, points: string): string =>
      `Better: ${side}, by ${points} points, compared with what is normal for the crops. `,
    notMeasured: 'not measured',
    noBatches: 'no batches',
    noLastYear: 'No batches in the same period a year earlier.',
    fewLastYear: (n: number): string => `Only ${batches(n)} in the same period a year earlier: too few to compare.`,
    loading: 'Loading the same period a year earlier…',
  },

  outliers: {
    title: 'Unusual batches',
    comparing: 'Comparing with the last 365 days…',
    none: 'None: no rate below typical, no size variation above it, no warnings.',
    typical: 'Typical is the range of most batches of a crop in the last 365 days. Normal is the average.',
    falling: (crop: string, measure: string, below: string): string => `${crop}: ${measure.toLowerCase()} ${below}`,
    noCrop: 'not compared: crop not recorded.',
    tooFew: (min: number): string => `not compared: fewer than ${count(min)} batches of the crop.`,
    notComparable: 'Not compared: the last 365 days are not loaded.',
    showAll: (total: number): string => `Show all ${count(total)}`,
    showFewer: 'Show fewer',
    inTable: 'Show in table',
    order: 'Order',
    why: 'Why unusual',
    orders: { worst: 'Worst first', newest: 'Newest first' },
    reason: (reason: Reason): string => {
      switch (reason.kind) {
        case 'low-germination':
          return `${reason.value === 0 ? 'Nothing' : `Only ${percent(reason.value, 0)}`} germinated${typical(reason.typical)}.`;
        case 'low-usable':
          return `${reason.value === 0 ? 'Nothing' : `Only ${percent(reason.value, 0)}`} usable${typical(reason.typical)}.`;
        case 'high-variation':
          return `Seedling size varies by ${percent(reason.value, 0)}${typical(reason.typical)}.`;
        case 'warning':
          return reason.isMeasured ? 'Scanner warning.' : 'Scanner warning, nothing measured.';
      }
    },
  },

  distribution: {
    title: (measure: string): string => `${measure} by crop`,
    summary: (worst: string, worstCrop: string, best: string, bestCrop: string): string =>
      `Lowest: ${worstCrop}, median ${worst}. Highest: ${bestCrop}, ${best}.`,
    head: ['Lowest', '25% are below', 'Median', '25% are above', 'Highest', 'Average'],
    middle: 'Middle 50%',
    all: 'All',
    hint: 'Click to show its batches.',
    key: 'Box: middle 50%; line: median. Thin lines: the other batches, without extreme ones. Dot, or arrow at the edge: lowest batch.',
    more: (n: number): string => `Not shown: ${n === 1 ? '1 crop' : `${count(n)} crops`} with fewer batches.`,
  },

  uniformity: {
    title: 'Size and uniformity',
    label: 'Seedling size and size variation.',
    none: 'No seedling sizes measured in this period.',
    summary: 'One dot per batch. Left: more uniform; up: larger.',
    variationAxis: 'Size variation',
    sizeAxis: 'Median size, mm²',
    logAxis: 'Median size, mm² (logarithmic)',
    hint: 'Click to open the batch.',
    sampled: (drawn: number, total: number): string => `${count(drawn)} of ${batches(total)} shown, evenly sampled.`,
  },

  activity: {
    title: 'Scan activity',
    none: 'No scans in this period.',
    summary: (by: 'day' | 'month', scanned: number, all: number, busiest: string, most: number): string => {
      const on = by === 'day' ? 'on' : 'in';
      if (all === 1) return `${batches(most)} ${on} ${busiest}.`;
      return `Scans ${on} ${count(scanned)} of ${count(all)} ${by}s. Busiest: ${busiest}, with ${batches(most)}.`;
    },
    steps: { day: 'Day', month: 'Month' },
    hint: { day: 'Click to zoom to this day.', month: 'Click to zoom to this month.' },
    noneKey: 'None',
    mostKey: (most: number, by: 'day' | 'month'): string => `${batches(most)} per ${by}`,
  },

  table: {
    columns: 'Columns',
    reset: 'Reset columns',
    sortBy: 'Sort by',
    newestFirst: 'Newest first',
    byName: 'By name',
    weakestFirst: 'Worst first, compared with what is normal for the crop.',
    unusual: (what: string): string => `Unusual: ${what}`,
    lowestGermination: 'Lowest germination first',
    lowestUsable: 'Lowest usable rate first',
    warningsFirst: 'Warnings first',
    warning: 'Warning',
    typical: (range: Range | null): string => (range === null ? '' : `typical ${range.low}–${percent(range.high, 0)}`),
    germination: 'Germination',
    usable: 'Usable',
  },

  export: {
    button: 'Export',
    csv: 'CSV file',
    excel: 'Excel file',
    parquet: 'Parquet (for data tools)',
    print: 'Print or save as PDF',
    service: 'Every column of all batches in this period:',
    failed: (why: string): string => `The export failed. ${why}`,
  },

  batch: {
    title: 'Batch',
    scanned: (crop: string, when: string, who: string | null): string => `${crop}, scanned ${when}${who === null ? '' : ` by ${who}`}`,
    loading: 'Loading batch…',
    notFoundTitle: 'Batch not found',
    notFound: (n: number): string => `Searched all ${batches(n)}; this ID was not found.`,
    showAll: 'Show all batches',
    searching: 'Searching all batches of your organisation.',
    warningTitle: 'Warning.',
    warning: 'The scanner reported a warning, without a reason. The figures of this batch may be inaccurate.',
    compared: 'Compared with other batches of this crop',
    noCrop: 'Not compared: crop not recorded.',
    tooFew: (min: number, crop: string): string =>
      `Fewer than ${count(min)} batches of ${crop} in the last 365 days: too few to compare.`,
    band: (n: number, crop: string): string =>
      `Shaded: what is typical of the ${batches(n)} of ${crop} in the last 365 days. Line: their average.`,
    allTypical: 'No unusual values.',
    tray: 'Average tray',
    allFields: 'All fields',
    yes: 'Yes',
    no: 'No',
    print: 'Print',
    copyLink: 'Copy link',
    copied: 'Link copied (opening it needs a sign-in)',
    openReport: 'Open report',
    newTab: ' (new tab)',
    notMeasured: 'Not measured.',
    outside: (isLow: boolean, typical: string): string => `${isLow ? 'Below' : 'Above'} typical (${typical})`,
    within: (typical: string): string => `Typical (${typical})`,
    to: (low: string, high: string): string => `${low} to ${high}`,
    scans: 'Other scans of this batch',
    adjacent: 'Adjacent batches',
    previous: (crop: string): string => `Previous ${crop} batch`,
    next: (crop: string): string => `Next ${crop} batch`,
    trayLabel: (total: number, usable: number, unusable: number, empty: number): string =>
      `${count(total)} cells: ${count(usable)} with a usable seedling, ${count(unusable)} with an unusable one, ${count(empty)} not germinated.`,
    usable: (n: number): string => `${count(n)} usable`,
    unusable: (n: number): string => `${count(n)} germinated, not usable`,
    notGerminated: (n: number): string => `${count(n)} not germinated`,
    trayNote: (total: number): string => `Average of this batch’s trays, with ${count(total)} cells each. The positions are not real.`,
    noCells: 'No cell counts recorded.',
  },
};

export type Text = typeof en;
