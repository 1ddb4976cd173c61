import fc from "fast-check";
import { expect, test } from "vitest";
import { type PageEntries, tablePage } from "../../../core/ledger/list.ts";
import { Group, RecordTable } from "../../../core/store/group.ts";
import type { Field } from "../../../core/store/layout.ts";

interface Thing {
  readonly number: number;
  readonly owner: number;
  readonly isGone: boolean;
}

/** A step gives the table a new record, or changes an earlier one. */
const step = fc.record({ at: fc.nat(40), owner: fc.nat(2), isGone: fc.boolean() });

test("an index lists what a search through the whole table finds, and pages show no more", () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 60 }),
      fc.integer({ min: 1, max: 5 }),
      fc.constantFrom("asc" as const, "desc" as const),
      (steps, limit, order) => {
        const table = new RecordTable<Thing, "number">(
          () => Buffer.alloc(0),
          {} as Field<Thing>,
          "number",
        );
        const of = table.indexBy(({ owner }) => owner);
        const living = table.indexBy(({ owner, isGone }) => (isGone ? undefined : owner));
        for (const { at, owner, isGone } of steps) {
          const number = Math.min(at, table.durable.size);
          const group = new Group();
          const before = [0, 1, 2].map((each) => living.records(each, null));
          table.set(group, { number, owner, isGone });
          expect([0, 1, 2].map((each) => living.records(each, null))).toEqual(before);
          group.published();
        }
        const found = (owner: number, isLiving: boolean) =>
          Array.from({ length: table.durable.size }, (_, number) => number).filter((number) => {
            const thing = table.durable.get(number);
            return thing?.owner === owner && !(isLiving && thing.isGone);
          });
        for (const owner of [0, 1, 2, 3]) {
          expect(of.numbers(owner)).toEqual(found(owner, false));
          expect(living.numbers(owner)).toEqual(found(owner, true));
          const paged: number[] = [];
          for (let after: number | null = null; ; ) {
            const view = ({ number, isGone }: Thing) => (isGone ? null : number);
            const page: PageEntries<number> = tablePage(
              table.durable,
              { after, limit },
              view,
              order,
              of.numbers(owner),
            );
            expect(page.data.length).toBeLessThanOrEqual(limit);
            paged.push(...page.data);
            after = page.next;
            if (after === null) break;
          }
          const wanted = found(owner, true);
          expect(paged).toEqual(order === "asc" ? wanted : wanted.reverse());
        }
      },
    ),
  );
});
