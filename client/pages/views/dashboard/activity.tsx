import type { ActivityListInput, ActivityListOutput } from 'account-client';
import { deviceLabel } from '../../../../server/shared/texts/device.ts';
import { api } from '../../api.ts';
import { Icon } from '../../icons/icon.tsx';
import { dayName, timeOfDay } from '../../language/format.ts';
import { text } from '../../language/texts.ts';
import { usePages } from '../../use-pages.ts';
import { ShowMore } from '../show-more.tsx';
import { Skeleton } from '../skeleton.tsx';
import { DashboardPage } from './dashboard-page.tsx';
import { markOf } from './event-marks.ts';
import { sentenceOf } from './event-sentences.ts';

type Event = ActivityListOutput['data'][number];

const A_PAGE = 20;

export function Activity() {
  return (
    <DashboardPage title={text('dashboard.parts.activity')}>
      {() => (
        <section class="card stack" aria-label={text('dashboard.activity.events')}>
          <Events day="h2" read={(page) => api.activity.list.query(page)} />
        </section>
      )}
    </DashboardPage>
  );
}

interface EventsProps {
  /** The rank of the headings. */
  day: 'h2' | 'h3';
  read(page: NonNullable<ActivityListInput>): Promise<ActivityListOutput>;
}

/** The events of an account by day, newest first, page by page. */
export function Events({ day: Heading, read }: EventsProps) {
  const { items, ...pages } = usePages((cursor) => read({ limit: A_PAGE, ...(cursor && { cursor }) }));
  if (items.length === 0 && pages.isBusy) return <Skeleton lines={6} />;
  return (
    <>
      {byDay(items).map(({ day, events }) => (
        <section key={day} class="day" aria-label={day}>
          <Heading>{day}</Heading>
          <ul class="entries">
            {events.map((event) => (
              <Entry key={event.id} event={event} />
            ))}
          </ul>
        </section>
      ))}
      <ShowMore {...pages} />
    </>
  );
}

function byDay(events: Event[]): { day: string; events: Event[] }[] {
  const days = new Map<string, Event[]>();
  for (const event of events) {
    const day = dayName(event.at);
    days.set(day, [...(days.get(day) ?? []), event]);
  }
  return [...days].map(([day, ofDay]) => ({ day, events: ofDay }));
}

function Entry({ event }: { event: Event }) {
  const { icon, look } = markOf(event);
  return (
    <li>
      <div class={look ? `mark ${look}` : 'mark'}>
        <Icon name={icon} />
      </div>
      <div>
        {look ? <strong>{sentenceOf(event, text)}</strong> : sentenceOf(event, text)}
        <p class="hint">{whenAndWhere(event)}</p>
      </div>
    </li>
  );
}

function whenAndWhere({ at, address, device }: Event): string {
  const time = timeOfDay(at);
  return address ? text('dashboard.activity.fromAddress', { time, address, device: deviceLabel(device, text) }) : time;
}
