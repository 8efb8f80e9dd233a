DROP INDEX alerts_of_incident;
ALTER TABLE alerts DROP COLUMN incident_id;
DROP TABLE incident_events;
DROP TABLE incidents;
