// The German texts.
import type { Range } from '../data/outliers';
import { ago, count, date, decimal, percent } from '../data/format';
import type { Text } from './en';

const batches = (n: number): string => (n === 1 ? '1 Charge' : `${count(n)} Chargen`);
const typical = (range: Range | null): string =>
  range === null ? '' : ` (üblich: ${percent(range.low, 0)} bis ${percent(range.high, 0)})`;

const MINUTE_MS = 60_000;

export const de: Text = {
  batches,
  someBatches: (some, all) => `${count(some)} von ${batches(all)}`,
  cropNotRecorded: 'Kultur nicht erfasst',
  unknownOperator: 'Person nicht erfasst',
  quoted: (text) => `„${text}“`,
  otherCrops: 'Andere Kulturen',

  fields: {
    batch_id: 'Chargen-ID',
    batch_name: 'Name',
    batch_creation_date: 'Gescannt',
    crop_type: 'Kultur',
    number_of_images: 'Bilder',
    total_cells_per_tray: 'Zellen pro Platte',
    avg_germinated_seedlings: 'Gekeimte Sämlinge',
    avg_non_germinated_seedlings: 'Zellen ohne Keimling',
    avg_germination_rate: 'Keimrate',
    avg_usable_seedlings: 'Brauchbare Sämlinge',
    avg_non_usable_cells: 'Unbrauchbare Zellen',
    avg_usable_seedling_rate: 'Anteil brauchbar',
    avg_coefficient_of_variation: 'Größen\u00ADstreuung',
    avg_median_seedling_size_mm2: 'Median\u00ADgröße',
    scanned_by_email: 'Gescannt von',
    analysis_link: 'Analysebericht',
    comment: 'Kommentar',
    warnings: 'Warnungen',
  },
  perTray: 'pro Platte',
  measures: { germination: 'Keimrate', usable: 'Anteil brauchbar' },

  layout: {
    skip: 'Zum Inhalt springen',
    home: 'batchscan, Übersicht',
    navigation: 'Hauptmenü',
    overview: 'Übersicht',
    batches: 'Chargen',
    signOut: 'Abmelden',
    themeTo: { light: 'Helle Darstellung', dark: 'Dunkle Darstellung' },
    documentation: 'API-Dokumentation (englisch)',
    language: 'Sprache',
    localTimes: (zone) => `Datum und Uhrzeit in ${zone}.`,
    utcTimes: 'Datum und Uhrzeit in UTC.',
    showUtc: 'UTC anzeigen',
    showLocal: 'Ortszeit anzeigen',
    dismiss: 'Schließen',
    options: 'Auswahl',
    linkFailed: (why) => `Die Anmeldung mit dem Link ist fehlgeschlagen. ${why}`,
    invalidDates: 'Der Zeitraum in diesem Link ist ungültig. Er wurde ignoriert.',
  },

  notFound: {
    title: 'Seite nicht gefunden',
    text: 'Unter dieser Adresse gibt es keine Seite.',
    back: 'Zur Übersicht',
  },

  signIn: {
    title: 'Anmelden',
    intro: 'Sehen Sie, was Ihre Scanner gemessen haben: Keimung, brauchbare Sämlinge und Gleichmäßigkeit.',
    ask: 'Client-ID und Secret oder einen Anmeldelink erhalten Sie von Ihrer Administration.',
    clientId: 'Client-ID',
    clientSecret: 'Client-Secret',
    keep: 'Auf diesem Gerät angemeldet bleiben',
    keepNote: '90 Tage lang oder bis zur Abmeldung. Das Secret wird nie gespeichert.',
    submit: 'Anmelden',
    submitting: 'Anmeldung läuft\u00a0…',
    again: 'Erneut anmelden',
    expired: 'Ihre Sitzung ist abgelaufen. Melden Sie sich erneut an, oder bitten Sie um einen neuen Anmeldelink.',
    error: (failure) => {
      switch (failure.kind) {
        case 'wrong-credentials':
        case 'signed-out':
          return 'Client-ID oder Secret ist falsch. Prüfen Sie beide und versuchen Sie es erneut.';
        case 'used-link':
          return 'Dieser Anmeldelink wurde schon benutzt oder ist abgelaufen. Bitten Sie um einen neuen.';
        case 'unavailable':
          return 'Der Dienst ist nicht verfügbar. Versuchen Sie es in einigen Sekunden erneut.';
        case 'offline':
          return 'Der Dienst ist nicht erreichbar. Prüfen Sie Ihre Verbindung und versuchen Sie es erneut.';
        case 'rejected':
          return `Der Dienst hat die Anmeldung abgelehnt: ${failure.detail}`;
      }
    },
    retrying: 'Diese Seite versucht es alle paar Sekunden erneut.',
  },

  period: {
    presets: {
      '1d': 'Heute',
      yesterday: 'Gestern',
      'since-friday': 'Seit Freitag',
      'this-week': 'Diese Woche',
      'last-week': 'Letzte Woche',
      'this-month': 'Dieser Monat',
      'last-month': 'Letzter Monat',
      '30d': '30 Tage',
      '90d': '90 Tage',
      '365d': '365 Tage',
      'this-year': 'Dieses Jahr',
      'last-year': 'Letztes Jahr',
    },
    presetsLabel: 'Zeiträume',
    from: 'Von',
    to: 'Bis',
    days: (n) => (n === 1 ? '1 Tag' : `${count(n)} Tage`),
    phrase: (from, to) => (from === to ? `am ${date(from)}` : `vom ${date(from)} bis ${date(to)}`),
    reversed: (from, to) =>
      `„Von“ liegt nach „Bis“. Setzen Sie „Bis“ auf ${date(from)} oder später oder „Von“ auf ${date(to)} oder früher.`,
    tooLong: (days) => `Der Zeitraum darf höchstens ${count(days)} Tage haben.`,
  },

  filters: {
    label: 'Zeitraum und Filter',
    button: (active) => (active === 0 ? 'Filter' : `Filter (${count(active)})`),
    crops: {
      label: 'Kultur',
      all: 'Alle Kulturen',
      some: (n) => `${count(n)} Kulturen`,
      none: 'Keine Kulturen in diesem Zeitraum.',
    },
    show: 'Anzeigen',
    all: 'Alle',
    unusual: 'Auffällige',
    withWarnings: 'Mit Warnungen',
    withoutWarnings: 'Ohne Warnungen',
    operators: {
      label: 'Gescannt von',
      all: 'Alle',
      some: (n) => `${count(n)} Personen`,
      none: 'Keine Scans in diesem Zeitraum.',
    },
    search: 'Suche',
    searchExample: 'Name, 13.11., KW 46',
    clear: 'Filter löschen',
  },

  loading: {
    label: 'Laden',
    progress: 'Fortschritt',
    start: 'Chargen werden geladen\u00a0…',
    upTo: (day) => `, bis ${date(day)}`,
    running: (n, upTo) => `Wird geladen: bisher ${batches(n)}${upTo}.`,
    partial: (n, upTo) => `Teilweise geladen: ${batches(n)}${upTo}.`,
    tooMany: (n, upTo) =>
      `Mehr als ${batches(n)} in diesem Zeitraum. Angezeigt werden die ersten ${count(n)}${upTo}. Wählen Sie einen kürzeren Zeitraum, um alle zu sehen.`,
    stopped: (n, upTo) => `Laden abgebrochen: ${batches(n)}${upTo}.`,
    expired: 'Ihre Sitzung ist abgelaufen.',
    waiting: 'Warten auf den Dienst.',
    unavailable: 'Der Dienst ist nicht verfügbar.',
    lost: 'Die Verbindung ist unterbrochen.',
    retryingIn: 'Nächster Versuch in',
    asOf: (time) => `Stand ${time}.`,
    outdated: (ageMs) => `Angezeigt wird der Stand von ${ageMs < MINUTE_MS ? 'gerade eben' : ago(ageMs)}.`,
    backToOverview: 'Zurück zur Übersicht',
    backTo: (what) => `Zurück zu ${what}`,
    previous: (n) => `Vorheriger Zeitraum wird geladen: ${count(n)}`,
    cancel: 'Abbrechen',
    continue: 'Fortsetzen',
    retry: 'Jetzt versuchen',
    refresh: 'Aktualisieren',
    unavailableTitle: 'Der Dienst ist nicht verfügbar',
    unreachableTitle: 'Der Dienst ist nicht erreichbar',
    usually: 'Das dauert meist weniger als eine Minute.',
    expiredTitle: 'Ihre Sitzung ist abgelaufen',
    signInToContinue: 'Melden Sie sich erneut an.',
    rejectedTitle: 'Der Dienst hat die Anfrage abgelehnt',
    noReason: 'Es wurde kein Grund genannt.',
    status: (detail, status) => `${detail} (Status ${status})`,
    cancelledTitle: 'Laden abgebrochen',
    nothingYet: 'Es wurde noch nichts geladen.',
    unreadable: 'Die Antwort des Dienstes konnte nicht gelesen werden.',
  },

  empty: {
    noneTitle: 'Noch keine Chargen',
    none: 'Chargen erscheinen hier nach dem ersten Import.',
    periodTitle: 'Keine Scans in diesem Zeitraum',
    period: (phrase) => `Es gibt keine Chargen ${phrase}.`,
    latest: (day) => `Der letzte Scan war am ${date(day)}.`,
    showLatest: 'Diesen Tag anzeigen',
    showYear: 'Letzte 365 Tage anzeigen',
    filterTitle: 'Keine Charge passt zu den Filtern',
    filter: 'Entfernen Sie einen Filter.',
    search: 'Suche und Filter betreffen nur den angezeigten Zeitraum.',
    correction: (text) => `Meinten Sie „${text}“?`,
    searchYear: (n) => `In den letzten 365 Tagen suchen${n === null ? '' : ` (${batches(n)})`}`,
  },

  recent: {
    yesterday: 'Seit gestern',
    unusual: (n, others) =>
      `${others === 0 ? '' : ` (${count(others)} ohne Vergleich)`}, ${n === 0 ? 'keine auffällig.' : `${count(n)} auffällig:`}`,
  },

  figures: {
    label: 'Kennzahlen',
    batches: 'Chargen',
    images: 'Bilder',
    warnings: 'Mit Warnungen',
    before: (value) => `vorher ${count(value)}`,
    fromNormal: (points) => (points === 0 ? 'normal' : `${decimal(Math.abs(points), 1)} Punkte ${points > 0 ? 'über' : 'unter'} normal`),
    normal: 'Normal: der Durchschnitt der gleichen Kulturen in den letzten 365 Tagen. Ein Wert außerhalb des üblichen Bereichs zählt als dessen nächstes Ende.',
    previous: (period, isDay) => `Vorher: ${isDay ? 'der Tag eine Woche davor' : 'der vorherige Zeitraum'}, ${period}.`,
    failed: 'Der vorherige Zeitraum konnte nicht geladen werden.',
    pending: 'Der Vergleich erscheint, wenn alles geladen ist.',
  },

  panel: {
    asTable: 'Als Tabelle anzeigen',
    tableLabel: (title) => `${title} als Tabelle`,
    noRates: 'In diesem Zeitraum wurde nichts gemessen.',
    crop: 'Kultur',
    batch: 'Charge',
    batches: 'Chargen',
    images: 'Bilder',
    mean: 'Durchschnitt',
    median: 'Median',
    noScans: 'Keine Scans',
    noRate: 'Nicht gemessen',
  },

  rates: {
    title: (measure) => `${measure} im Zeitverlauf`,
    choice: 'Messwert',
    steps: { day: 'Tag', week: 'Woche ab', month: 'Monat' },
    weekNumber: (week) => `KW ${week}`,
    weekOf: (day) => `Woche ab ${day}`,
    single: (mean) => `Durchschnitt ${mean}.`,
    soFar: { day: 'Heute bisher', week: 'Diese Woche bisher', month: 'Diesen Monat bisher' },
    soFarKey: 'Offener Punkt: noch nicht zu Ende.',
    summary: (highWhen, high, lowWhen, low, last) =>
      `Am höchsten ${highWhen} (${high}), am niedrigsten ${lowWhen} (${low})${last}.`,
    last: (step, day, mean) =>
      `, ${{ day: 'letzter voller Tag', week: 'letzte volle Woche', month: 'letzter voller Monat' }[step]} (${day}) ${mean}`,
    when: (step, day) => `${{ day: 'am', week: 'in der Woche ab', month: 'im' }[step]} ${day}`,
    below: (mean, week, points, normal) => `${mean} seit der Woche ab ${week}: ${points} Punkte unter normal (${normal}).`,
    typicalFrom: (low) => `Üblich ab ${low}`,
    normal: (rate) => `Normal ${rate}`,
    typicalTo: (high) => `Üblich bis ${high}`,
    decline: (day) => `Unter normal seit ${day}`,
    onlyCrop: (crop) => `Nur ${crop} anzeigen`,
    low: '10 % liegen darunter',
    high: '10 % liegen darüber',
    spread: 'Mittlere 80 %',
    key: 'Linie: Durchschnitt; Fläche: mittlere 80 % der Chargen.',
    zoom: 'Zum Vergrößern über einen Zeitraum ziehen.',
    average: (crop, mean, n) => `${crop}: Durchschnitt ${mean} aus ${batches(n)}.`,
    scale: (low, high) => `Alle mit derselben Skala, ${low} bis ${high}. Gepunktet: alle Kulturen.`,
    omitted: (n) => `${n === 1 ? 'Eine weitere Kultur steht' : `${count(n)} weitere Kulturen stehen`} unten im Diagramm nach Kultur.`,
  },

  compare: {
    title: 'Vergleich',
    choice: 'Vergleichen',
    by: { crop: 'Zwei Kulturen', operator: 'Zwei Personen', year: 'Mit dem Vorjahr' },
    first: 'Erste',
    second: 'Zweite',
    thisPeriod: 'Dieser Zeitraum',
    lastYear: 'Ein Jahr davor',
    none: {
      crop: 'In diesem Zeitraum gibt es nur eine Kultur.',
      operator: 'Alle Scans in diesem Zeitraum sind von einer Person.',
    },
    summary: (a, meanA, b, meanB) => `${a}: ${meanA}. ${b}: ${meanB}.`,
    byCrop: 'Die Linien sind so berechnet, als hätten beide die gleichen Kulturen gescannt.',
    noDifference: 'Kein echter Unterschied, verglichen mit dem, was für die Kulturen normal ist. ',
    tooFew: 'Zu wenige Chargen für ein Urteil. ',
    few: 'wenige Chargen',
    better: (side, points) => `Besser: ${side}, um ${points} Punkte, verglichen mit dem, was für die Kulturen normal ist. `,
    notMeasured: 'nicht gemessen',
    noBatches: 'keine Chargen',
    noLastYear: 'Keine Chargen im gleichen Zeitraum des Vorjahres.',
    fewLastYear: (n) => `Nur ${batches(n)} im gleichen Zeitraum des Vorjahres: zu wenige für einen Vergleich.`,
    loading: 'Der gleiche Zeitraum des Vorjahres wird geladen\u00a0…',
  },

  outliers: {
    title: 'Auffällige Chargen',
    comparing: 'Vergleich mit den letzten 365 Tagen\u00a0…',
    none: 'Keine: kein Anteil unter, keine Größenstreuung über dem Üblichen, keine Warnungen.',
    typical: 'Üblich ist der Bereich der meisten Chargen einer Kultur in den letzten 365 Tagen. Normal ist der Durchschnitt.',
    falling: (crop, measure, below) => `${crop}: ${measure} ${below}`,
    noCrop: 'ohne Vergleich: Kultur nicht erfasst.',
    tooFew: (min) => `ohne Vergleich: weniger als ${count(min)} Chargen der Kultur.`,
    notComparable: 'Kein Vergleich: Die letzten 365 Tage sind nicht geladen.',
    showAll: (total) => `Alle ${count(total)} anzeigen`,
    showFewer: 'Weniger anzeigen',
    inTable: 'Als Tabelle',
    order: 'Reihenfolge',
    why: 'Warum auffällig',
    orders: { worst: 'Schlechteste zuerst', newest: 'Neueste zuerst' },
    reason: (reason) => {
      switch (reason.kind) {
        case 'low-germination':
          return `${reason.value === 0 ? 'Nichts' : `Nur ${percent(reason.value, 0)}`} gekeimt${typical(reason.typical)}.`;
        case 'low-usable':
          return `${reason.value === 0 ? 'Nichts' : `Nur ${percent(reason.value, 0)}`} brauchbar${typical(reason.typical)}.`;
        case 'high-variation':
          return `Die Größe streut um ${percent(reason.value, 0)}${typical(reason.typical)}.`;
        case 'warning':
          return reason.isMeasured ? 'Warnung des Scanners.' : 'Warnung des Scanners, nichts gemessen.';
      }
    },
  },

  distribution: {
    title: (measure) => `${measure} nach Kultur`,
    summary: (worst, worstCrop, best, bestCrop) =>
      `Am niedrigsten: ${worstCrop}, Median ${worst}. Am höchsten: ${bestCrop}, ${best}.`,
    head: ['Niedrigster', '25 % liegen darunter', 'Median', '25 % liegen darüber', 'Höchster', 'Durchschnitt'],
    middle: 'Mittlere 50 %',
    all: 'Alle',
    hint: 'Klicken, um die Chargen zu sehen.',
    key: 'Kasten: mittlere 50 %; Strich: Median. Dünne Linien: übrige Chargen ohne Ausreißer. Punkt oder Pfeil am Rand: niedrigste Charge.',
    more: (n) => `${count(n)} Kulturen mit weniger Scans stehen in der Tabelle.`,
  },

  uniformity: {
    title: 'Größe und Gleichmäßigkeit',
    label: 'Größe der Sämlinge und ihre Streuung.',
    none: 'In diesem Zeitraum wurden keine Größen gemessen.',
    summary: 'Ein Punkt pro Charge. Links: gleichmäßiger; oben: größer.',
    variationAxis: 'Größenstreuung',
    sizeAxis: 'Mediangröße, mm²',
    logAxis: 'Mediangröße, mm² (logarithmisch)',
    hint: 'Klicken, um die Charge zu öffnen.',
    sampled: (drawn, total) => `${count(drawn)} von ${batches(total)}, gleichmäßig ausgewählt.`,
  },

  activity: {
    title: 'Scans im Kalender',
    none: 'Keine Scans in diesem Zeitraum.',
    summary: (by, scanned, all, busiest, most) => {
      if (all === 1) return `${batches(most)} ${by === 'day' ? 'am' : 'im'} ${busiest}.`;
      return `Scans ${by === 'day' ? 'an' : 'in'} ${scanned === 1 ? 'einem' : count(scanned)} von ${count(all)} ${by === 'day' ? 'Tagen' : 'Monaten'}. Die meisten: ${busiest}, mit ${batches(most)}.`;
    },
    steps: { day: 'Tag', month: 'Monat' },
    hint: { day: 'Klicken, um diesen Tag zu zeigen.', month: 'Klicken, um diesen Monat zu zeigen.' },
    noneKey: 'Keine',
    mostKey: (most, by) => `${batches(most)} pro ${by === 'day' ? 'Tag' : 'Monat'}`,
  },

  table: {
    columns: 'Spalten',
    reset: 'Spalten zurücksetzen',
    sortBy: 'Sortieren nach',
    newestFirst: 'Neueste zuerst',
    weakestFirst: 'Schwächste zuerst, verglichen mit dem, was für die Kultur normal ist.',
    byName: 'Nach Name',
    unusual: (what) => `Auffällig: ${what}`,
    lowestGermination: 'Niedrigste Keimrate zuerst',
    lowestUsable: 'Niedrigster Anteil brauchbar zuerst',
    warningsFirst: 'Warnungen zuerst',
    warning: 'Warnung',
    typical: (range) => (range === null ? '' : `üblich ${range.low}–${percent(range.high, 0)}`),
    germination: 'Gekeimt',
    usable: 'Brauchbar',
  },

  export: {
    button: 'Export',
    csv: 'CSV-Datei',
    excel: 'Excel-Datei',
    print: 'Drucken oder als PDF sichern',
    parquet: 'Parquet (für Datenwerkzeuge)',
    service: 'Alle Spalten aller Chargen dieses Zeitraums:',
    failed: (why) => `Der Export ist fehlgeschlagen. ${why}`,
  },

  batch: {
    title: 'Charge',
    scanned: (crop, when, who) => `${crop}, gescannt ${when}${who === null ? '' : ` von ${who}`}`,
    loading: 'Charge wird geladen\u00a0…',
    notFoundTitle: 'Charge nicht gefunden',
    notFound: (n) => `Alle ${batches(n)} durchsucht; diese ID ist nicht dabei.`,
    showAll: 'Alle Chargen anzeigen',
    searching: 'Alle Chargen Ihrer Organisation werden durchsucht.',
    warningTitle: 'Warnung.',
    warning: 'Der Scanner hat eine Warnung gemeldet, ohne Grund. Die Werte dieser Charge sind vielleicht ungenau.',
    compared: 'Verglichen mit anderen Chargen dieser Kultur',
    noCrop: 'Kein Vergleich: Kultur nicht erfasst.',
    tooFew: (min, crop) =>
      `Weniger als ${count(min)} Chargen von ${crop} in den letzten 365 Tagen: zu wenige zum Vergleichen.`,
    band: (n, crop) => `Fläche: was für die ${batches(n)} von ${crop} in den letzten 365 Tagen üblich ist. Strich: ihr Durchschnitt.`,
    allTypical: 'Keine auffälligen Werte.',
    tray: 'Durchschnittliche Platte',
    allFields: 'Alle Felder',
    yes: 'Ja',
    no: 'Nein',
    print: 'Drucken',
    copyLink: 'Link kopieren',
    copied: 'Link kopiert (zum Öffnen ist eine Anmeldung nötig)',
    openReport: 'Bericht öffnen',
    newTab: ' (neuer Tab)',
    notMeasured: 'Nicht gemessen.',
    outside: (isLow, typical) => `${isLow ? 'Unter' : 'Über'} üblich (${typical})`,
    within: (typical) => `Üblich (${typical})`,
    to: (low, high) => `${low} bis ${high}`,
    scans: 'Weitere Scans dieser Charge',
    adjacent: 'Benachbarte Chargen',
    previous: (crop) => `Vorherige Charge ${crop}`,
    next: (crop) => `Nächste Charge ${crop}`,
    trayLabel: (total, usable, unusable, empty) =>
      `Von ${count(total)} Zellen haben ${count(usable)} einen brauchbaren Sämling, ${count(unusable)} einen unbrauchbaren, und ${count(empty)} sind nicht gekeimt.`,
    usable: (n) => `${count(n)} brauchbar`,
    unusable: (n) => `${count(n)} gekeimt, nicht brauchbar`,
    notGerminated: (n) => `${count(n)} nicht gekeimt`,
    trayNote: (total) => `Durchschnitt der Platten dieser Charge mit je ${count(total)} Zellen. Die Lage der Zellen ist nicht echt.`,
    noCells: 'Keine Zellen erfasst.',
  },
};
