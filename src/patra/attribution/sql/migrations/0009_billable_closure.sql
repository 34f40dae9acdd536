-- The closure of a billable fact: with the type it is the fact's billing key, and it joins a click to its impression.
-- Rows of earlier versions have none.
ALTER TABLE att_billable ADD COLUMN closure {blob};

-- Closures whose impression no archive took (given up, refused, or in conflict): their clicks are not billed (F26).
CREATE TABLE att_lost_impression (
  closure {blob} NOT NULL PRIMARY KEY,
  decision_id BIGINT NOT NULL
) {without_rowid};
